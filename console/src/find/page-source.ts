import { allows } from '../api/session.ts';
import { pages } from '../app/pages.ts';
import type { Found, Source } from './found.ts';
import { hasWords } from './word-patterns.ts';

/** The pages of the console that the session may see. */
export const pageSource: Source = { title: 'Pages', icon: 'overview', withoutWords: true, find: findPages };

/** The pages of the navigation, and by a word their tabs too. */
async function findPages(text: string): Promise<Found[]> {
  const allowed = pages.filter(({ inNavigation, scopes }) => inNavigation && allows(...scopes));
  const places = await Promise.all(
    allowed.map(async ({ path, title, views }) => {
      const tabs = text === '' || views === undefined ? [] : await views();
      const ofPage = tabs.flatMap(({ path: place, tab, scopes }) =>
        tab !== undefined && allows(...scopes) ? [{ path: place, label: tab, hint: title }] : [],
      );
      return [{ path, label: title, hint: '' }, ...ofPage];
    }),
  );
  return places
    .flat()
    .filter(({ label }) => hasWords(label, text))
    .map(({ path, label, hint }) => ({ key: path, label, hint, to: { path } }));
}
