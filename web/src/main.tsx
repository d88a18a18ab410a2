// Entry point: finds the pages (every file in views/ that exports `view`) and mounts the application.
import { render } from "preact";
import { App } from "./app";
import { showVisibleText } from "./base/visibleText";
import { Session } from "./data/session";
import { createApi } from "./data/wire/api";
import { RunsPage } from "./runs";
import { pagesOf, type View } from "./state/view";
import "./style/base.css";
import "./style/frame.css";
import "./style/timeline.css";
import "./style/overview.css";
import "./style/structure.css";
import "./style/profile.css";
import "./style/tables.css";
import "./style/pipeline.css";
import "./style/devices.css";
import "./style/ranks.css";
import "./style/services.css";
import "./style/runs.css";
import "./style/comparison.css";

showVisibleText();
const root = document.getElementById("app");
const found = import.meta.glob<View>("./views/*.tsx", { eager: true, import: "view" });
const pages = pagesOf(Object.values(found));
if (root?.dataset.root) render(<RunsPage root={new URL(root.dataset.root, location.href)} />, root);
else if (root) {
  const session = new Session(createApi(new URL("./", location.href)), window);
  session.followRun();
  render(<App session={session} pages={pages} />, root);
}
