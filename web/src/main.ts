import "./style/index.css";
import { App } from "./app";
import { embedded } from "./data";
import { h } from "./dom";
import { follow } from "./live";
import { State } from "./state";

const root = document.getElementById("app")!;
const page = embedded();
if (page === null) {
  root.append(h("p", { class: "empty" }, "This page holds no data: it is the frame that pubmark fills."));
} else {
  const app = new App(root, page, new State({ theme: "auto", result: "0" }));
  if (page.live) follow(app);
}
