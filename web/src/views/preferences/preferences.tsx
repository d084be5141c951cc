/** At the foot of the list: language, colours, what is kept of one, and the way out. */

import { signOut } from "../../api/credential.ts";
import { IconButton } from "../../parts/icon_button.tsx";
import { go } from "../../state/route.ts";
import { chooseTheme, theme, THEMES } from "../../state/theme.ts";
import { showShortcuts } from "../help/shortcuts.tsx";
import { LanguageChoice } from "./language_choice.tsx";
import "./preferences.css";
import { words } from "./words.ts";

export function Preferences({ onChosen }: { onChosen: () => void }) {
  const text = words.value;
  return (
    <footer class="preferences">
      <LanguageChoice />
      <select
        class="choice"
        aria-label={text.theme}
        value={theme.value}
        onChange={(event) => {
          const chosen = THEMES.find((one) => one === event.currentTarget.value);
          if (chosen) chooseTheme(chosen);
        }}
      >
        {THEMES.map((one) => (
          <option key={one} value={one}>
            {text.themes[one]}
          </option>
        ))}
      </select>
      <IconButton
        icon="person"
        label={text.profile}
        onClick={() => {
          go({ view: "profile" });
          onChosen();
        }}
      />
      <IconButton
        icon="compact"
        label={text.savings}
        onClick={() => {
          go({ view: "savings" });
          onChosen();
        }}
      />
      <IconButton icon="keyboard" label={text.shortcuts} onClick={showShortcuts} />
      <IconButton icon="leave" label={text.signOut} onClick={() => void signOut()} />
    </footer>
  );
}
