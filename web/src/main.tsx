/** Where the page begins. */

import { render } from "preact";

import { takeFromAddress } from "./api/credential.ts";
import { App } from "./app.tsx";
import "./state/theme.ts";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";

takeFromAddress();
addEventListener("hashchange", takeFromAddress);

const page = document.getElementById("page");
if (page) render(<App />, page);
