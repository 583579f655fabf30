/**
 * Calls the listener whenever the page is hidden, which may be the last moment of it. Returns what ends that. Does
 * nothing in Node.
 */
export function onPageHidden(listener: () => void): () => void {
  const page: unknown = Reflect.get(globalThis, 'document');
  if (!(page instanceof EventTarget)) return () => {};
  const onChange = () => {
    if (Reflect.get(page, 'visibilityState') === 'hidden') listener();
  };
  page.addEventListener('visibilitychange', onChange);
  return () => page.removeEventListener('visibilitychange', onChange);
}
