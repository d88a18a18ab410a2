// Entry point: finds the pages (every file in views/ that exports `view`) and mounts the application.
import { render } from "preact";
import { App } from "./app";
import { createApi } from "./data/api";
import { Session } from "./data/session";
import type { View } from "./data/view";
import "./style/base.css";
import "./style/frame.css";
import "./style/timeline.css";
import "./style/overview.css";
import "./style/structure.css";
import "./style/profile.css";
import "./style/tables.css";
import "./style/pipeline.css";
import "./style/devices.css";

const found = import.meta.glob<View>("./views/*.tsx", { eager: true, import: "view" });
const views = Object.values(found).sort((a, b) => a.key.localeCompare(b.key));
const root = document.getElementById("app");
if (root) render(<App session={new Session(createApi(new URL("./", location.href)), window)} views={views} />, root);
