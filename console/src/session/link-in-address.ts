/**
 * Takes the text of a sign-in link from the address and removes it there, so that nobody reads it over a shoulder or in the
 * browser's history. Undefined where there is none.
 */
export function takeLink(): string | undefined {
  const [, link] = /^#link=(.+)$/.exec(location.hash) ?? [];
  if (link !== undefined) history.replaceState(null, '', location.pathname + location.search);
  return link;
}
