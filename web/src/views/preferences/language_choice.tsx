/** English or Chinese. */

import { chooseLocale, locale, LOCALES } from "../../language/language.ts";
import { NAMES, words } from "./words.ts";

export function LanguageChoice() {
  return (
    <select
      class="choice"
      aria-label={words.value.language}
      value={locale.value}
      onChange={(event) => {
        const chosen = LOCALES.find((one) => one === event.currentTarget.value);
        if (chosen) chooseLocale(chosen);
      }}
    >
      {LOCALES.map((one) => (
        <option key={one} value={one} lang={one}>
          {NAMES[one]}
        </option>
      ))}
    </select>
  );
}
