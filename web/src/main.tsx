/** Entry point of the page. */

import { render } from "preact";

import { readTokenFromUrl } from "./api/credential.ts";
import { App } from "./app.tsx";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";

readTokenFromUrl();
addEventListener("hashchange", readTokenFromUrl);

const page = document.getElementById("page");
if (page) render(<App />, page);
