/** Urls of this server's files, as paths of the page's own address: its policy loads from nowhere else. */

const FILES = "/api/v1/agent/files/";

/** The path of a file here, whatever name the server goes by; null for what is elsewhere, or no url at all. */
export function ownPath(url: string): string | null {
  try {
    const { pathname, search } = new URL(url, location.origin);
    return pathname.startsWith(FILES) ? pathname + search : null;
  } catch {
    return null;
  }
}
