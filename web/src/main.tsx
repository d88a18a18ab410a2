// Entry point: mounts the application.
import { render } from "preact";

const root = document.getElementById("app");
if (root) render(<p>strobe</p>, root);
