import { describe, expect, test } from "vitest";
import { escapeXml, SvgPen } from "./svgSurface";

const pen = (): SvgPen =>
  new SvgPen(
    "p",
    { font: "", measureText: (text) => ({ width: text.length }) as TextMetrics },
    (_, x, y, wide, tall) => `data:${[x, y, wide, tall]}`,
  );
const drawn = (draw: (pen: SvgPen) => void): string => {
  const one = pen();
  draw(one);
  return one.elements.join("");
};

describe("a pen that writes SVG", () => {
  test("keeps rectangles, and leaves out those without an area", () => {
    const text = drawn((p) => {
      p.fillStyle = "rgb(1,2,3)";
      p.fillRect(1.2345, 2, 3, 4);
      p.fillRect(0, 0, 0, 4);
    });
    expect(text).toBe('<rect x="1.23" y="2" width="3" height="4" fill="rgb(1,2,3)"/>');
  });
  test("writes names as text that can be selected, whatever is in them", () => {
    const text = drawn((p) => {
      p.textBaseline = "middle";
      p.fillText('void f<int&>("x")\u0001', 5, 6);
    });
    expect(text).toContain(">void f&lt;int&amp;&gt;(&quot;x&quot;)\\u{1}</text>");
    expect(text).toContain('dominant-baseline="central"');
  });
  test("closes what a clip opened when it is restored, and takes the looks back", () => {
    const text = drawn((p) => {
      p.fillStyle = "red";
      p.save();
      p.beginPath();
      p.rect(0, 0, 10, 10);
      p.clip();
      p.fillStyle = "blue";
      p.fillRect(0, 0, 5, 5);
      p.restore();
      p.fillRect(1, 1, 2, 2);
    });
    expect(text.match(/<g /g)).toHaveLength(1);
    expect(text.indexOf("</g>")).toBeGreaterThan(text.indexOf('fill="blue"'));
    expect(text.indexOf("</g>")).toBeLessThan(text.indexOf('fill="red"'));
    expect(text).toContain('clipPath id="p-1"><path d="M0 0h10v10h-10Z"');
  });
  test("takes images from where they are on the canvas", () =>
    expect(drawn((p) => p.drawImage({} as OffscreenCanvas, 0, 3, 100, 1, 0, 20, 50, 10))).toContain(
      'width="50" height="10" preserveAspectRatio="none" style="image-rendering:pixelated" href="data:0,3,100,1"',
    ));
  test("draws curves", () => {
    const text = drawn((p) => {
      p.beginPath();
      p.moveTo(0, 0);
      p.bezierCurveTo(1, 2, 3, 4, 5, 6);
      p.stroke();
    });
    expect(text).toContain('d="M0 0C1 2 3 4 5 6"');
  });
});

test("text of XML has no marks of XML", () => expect(escapeXml(`<a b="c">&`)).toBe("&lt;a b=&quot;c&quot;&gt;&amp;"));
