import { later } from '../components/later.tsx';

/** The detail of an entry. */
export const OpenEntry = later(async () => (await import('./entry-panel.tsx')).EntryPanel);
