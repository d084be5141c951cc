/** Which urls of a card may be followed, and which pictures are loaded. The server checks them too; this page trusts nobody. */

const WEB = /^https?:\/\/[^\s/?#@\\<>"]+(?:[/?#][^\s\\<>"]*)?$/i;
const OURS = /^\/api\/(?![^?#]*(?:\.|%2e){2})[^\s\\<>"]*$/i;
const MAIL = /^mailto:[^\s\\<>"]+$/i;
const INLINE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/;

/** The url if it may be a link, else null. */
export function safeLink(url: unknown): string | null {
  return typeof url === "string" && [WEB, OURS, MAIL].some((kind) => kind.test(url)) ? url : null;
}

export type Picture = { readonly kind: "shown"; readonly src: string } | { readonly kind: "linked"; readonly href: string };

/** Pictures of our own server and those inside the url are shown; one elsewhere would tell others who looks at it. */
export function pictureAt(url: unknown): Picture | null {
  if (typeof url !== "string") return null;
  if (OURS.test(url) || INLINE.test(url)) return { kind: "shown", src: url };
  return WEB.test(url) ? { kind: "linked", href: url } : null;
}
