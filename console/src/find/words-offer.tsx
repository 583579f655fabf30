import { later } from '../components/later.tsx';

/** What some words find. */
export const WordsOffer = later(async () => (await import('./found-words.tsx')).FoundWords);
