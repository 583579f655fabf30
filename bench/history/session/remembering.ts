import type { DictionaryCache } from '../../../src/changelog/names/dictionary-cache.ts';
import { Landmarks } from '../../../src/changelog/read/landmarks.ts';

/** What may be known of earlier questions when the next one is asked. Names stay known in all of them. */
export interface Remembering {
  name: string;
  /** Is called before each question. */
  forget(dictionaries: DictionaryCache, tenant: string): Promise<void>;
}

export const rememberings: readonly Remembering[] = [
  { name: 'as today', forget: async () => {} },
  {
    name: 'total alone',
    // The landmark where the window begins tells the total; all others tell where pages stand.
    async forget(dictionaries, tenant) {
      const { landmarks } = await dictionaries.get(tenant);
      for (const [selections, known] of landmarks) {
        const start = known.atOrAfter(0);
        if (known.size <= 1 || start === undefined) continue;
        const total = new Landmarks(known.folds);
        total.add(start);
        landmarks.set(selections, total);
      }
    },
  },
  {
    name: 'nothing',
    forget: async (dictionaries, tenant) => (await dictionaries.get(tenant)).landmarks.clear(),
  },
];
