import { embedded } from "./data";
import { h } from "./dom";

const page = embedded();
const app = document.getElementById("app")!;
app.append(h("pre", null, page === null ? "This page has no data." : page.results.map((result) => result.title).join("\n")));
