// Where the browser of the tests is.
import { join } from "node:path";

export const BROWSER = join(import.meta.dirname, "node_modules", ".browser");
