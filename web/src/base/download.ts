// Hands the user a file that was made in the page.

export function saveFile(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has taken the address over once the click is done.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export const csvFile = (text: string): Blob => new Blob([text], { type: "text/csv;charset=utf-8" });
