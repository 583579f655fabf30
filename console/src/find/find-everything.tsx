import { ApiError } from '@annals/client';
import { useEffect, useMemo } from 'preact/hooks';
import { fieldAt } from '../../../src/query/spans.ts';
import { quoted, writtenValue } from '../../../src/query/written.ts';
import { isAborted } from '../api/failure.ts';
import { findActors, findDocuments, readFacets, readNames } from '../api/history-reads.ts';
import { allows, historyAbilities, historyScopes } from '../api/session.ts';
import { counted } from '../components/numbers.ts';
import { Name } from '../components/text.tsx';
import { documentsOf } from '../document/document-view.ts';
import { historyOf } from '../history/history-view.ts';
import { allTime } from '../history/time-choices.ts';
import { personOf } from '../history/who-queries.ts';
import { writtenPath } from '../query-text/edit-query.ts';
import { knownViews, readViews, targetOfView } from '../views/known-views.ts';
import { type FoundGroup, hasWords, type Source, wordPattern } from './found.ts';

/** A text that is a query is one thing that is found: its history. */
const query: Source = {
  title: 'Query',
  icon: 'history',
  find: (text) => [{ key: text, label: text, hint: 'changes that match', to: historyOf(text) }],
};

/** What some words find in everything that the session may see. */
type FindEverything = (text: string, signal: AbortSignal) => Promise<readonly FoundGroup[]>;

/** Searches all that the session may see, then `more`; omits empty groups. Reads once what is the same for any text. */
export function useFindEverything(more: readonly Source[] = []): FindEverything {
  const { find, stop } = useMemo(() => {
    const controller = new AbortController();
    const all = [...sourcesWith(readOnce(() => readFirstPaths(controller.signal))), ...more];
    return { find: findIn(all), stop: () => controller.abort() };
  }, []);
  useEffect(() => stop, []);
  return find;
}

function findIn(sources: readonly Source[]): FindEverything {
  return async (text, signal) => {
    const candidates = [...(isQuery(text) ? [query] : []), ...sources];
    const allowed = candidates.filter(
      ({ scopes, withoutWords = false }) =>
        (scopes === undefined || allows(...scopes)) && (text !== '' || withoutWords),
    );
    const groups = await Promise.all(allowed.map((source) => groupOf(source, text, signal)));
    const found = groups.filter(({ items, error }) => items.length > 0 || error !== undefined);
    const [exact, others] = [true, false].map((is) => found.filter(({ items }) => (items[0]?.isExact ?? false) === is));
    return [...(exact ?? []), ...(others ?? [])];
  };
}

/** What failed is read again for the next text. */
function readOnce<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let reading: Promise<Value> | undefined;
  return () => {
    reading ??= read().catch((error: unknown) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
}

async function groupOf(source: Source, text: string, signal: AbortSignal): Promise<FoundGroup> {
  try {
    return { source, items: await source.find(text, signal), error: undefined };
  } catch (error) {
    if (isAborted(error)) throw error;
    // What the others have found is still of use.
    return { source, items: [], error };
  }
}

/** Whether a text is written in the query language, and not in words. */
export function isQuery(text: string): boolean {
  return fieldAt(text, 0) !== undefined;
}

/** Things of one kind that are shown. */
const size = 6;

/** The sources of names of the history, in order. `firstPaths` reads the first of all fields, which fit any text. */
const sourcesWith = (firstPaths: () => Promise<readonly string[]>): readonly Source[] => [
  {
    title: 'Saved views',
    icon: 'clock',
    scopes: [historyAbilities.all],
    withoutWords: true,
    find: async (text, signal) =>
      (knownViews.value ?? (await readViews(signal)))
        .filter(({ name }) => hasWords(name, text))
        .slice(0, size)
        .map(({ id, name, q }) => ({ key: id, label: name, hint: q, to: targetOfView(id) })),
  },
  {
    title: 'Documents',
    icon: 'document',
    scopes: [historyAbilities.names],
    find: async (text, signal) => {
      const documents = await findDocuments({ text, size: size + 1 }, signal);
      const found = documents.slice(0, size).map(({ entity, entityId, name }) => ({
        key: JSON.stringify([entity, entityId]),
        label: name ?? entityId,
        hint: name === undefined ? entity : `${entity} ${entityId}`,
        to: { path: 'document', parameters: { entity, id: entityId } },
        isExact: entityId === text,
      }));
      const all = { key: 'all', label: 'All documents that begin so', hint: '', to: documentsOf({ text }) };
      return documents.length > size ? [...found, all] : found;
    },
  },
  {
    title: 'People and systems',
    icon: 'actor',
    scopes: historyScopes,
    find: async (text, signal) => {
      const [people, names] = await Promise.all([
        allows(historyAbilities.all) ? findActors(text, size, signal) : [],
        namesWithWord('actor', text, signal),
      ]);
      const known = new Set(people.flatMap((person) => person.names.map(({ name }) => name)));
      return [
        ...people.map(({ actorId, names: [latest], changes }) => ({
          key: `id ${actorId}`,
          label: latest?.name ?? actorId,
          hint: `${actorId}, ${counted(changes, 'change')}`,
          to: personOf({ actor: latest?.name ?? actorId, actorId }),
        })),
        ...names
          .filter(({ name }) => !known.has(name))
          .map(({ name, hint }) => ({ key: name, label: name, hint, to: { path: 'actor', parameters: { name } } })),
      ].slice(0, size);
    },
  },
  {
    title: 'Types of documents',
    icon: 'data',
    scopes: historyScopes,
    find: async (text, signal) =>
      (await namesWithWord('entity', text, signal)).map(({ name, hint }) => ({
        key: name,
        label: name,
        hint,
        to: historyOf(`entity:${writtenValue(name)}`),
      })),
  },
  {
    title: 'Fields',
    icon: 'edit',
    scopes: [historyAbilities.names],
    find: async (text, signal) =>
      (await pathsWithWords(text, firstPaths(), signal)).map((path) => ({
        key: path,
        label: path,
        hint: 'changes of this field',
        to: historyOf(`path:${writtenPath(path)}`),
      })),
  },
];

interface NamedChanges {
  readonly name: string;
  readonly hint: string;
}

/** The names in which a text begins a word, those with most changes first. */
async function namesWithWord(field: 'actor' | 'entity', text: string, signal: AbortSignal): Promise<NamedChanges[]> {
  try {
    const q = `${field}:~${quoted(wordPattern(text))} occurredAt:>="${allTime}"`;
    const { values } = await readFacets(q, field, size, signal);
    return values.map(({ value, count }) => ({ name: value, hint: counted(count, 'change') }));
  } catch (error) {
    // The service matches expressions with so many names only. Among more, a name is found by its beginning.
    if (!(error instanceof ApiError) || error.status !== 400) throw error;
    if (!allows(historyAbilities.names)) return [];
    // A part of the history may show no actors.
    const names = await readNames({ field, prefix: text, size }, signal).catch((refusal: unknown) => {
      if (refusal instanceof ApiError && refusal.status === 400) return [];
      throw refusal;
    });
    return names.map((name) => ({ name, hint: '' }));
  }
}

/** The service lists so many names at once. */
const maxListed = 100;

/** The first of all fields. */
async function readFirstPaths(signal: AbortSignal): Promise<readonly string[]> {
  return await readNames({ field: 'path', prefix: '', size: maxListed }, signal);
}

/** The fields whose names begin so, and of the first of all fields those that have the words anywhere. */
async function pathsWithWords(text: string, first: Promise<readonly string[]>, signal: AbortSignal): Promise<string[]> {
  const [begun, listed] = await Promise.all([readNames({ field: 'path', prefix: text, size }, signal), first]);
  return [...new Set([...begun, ...listed.filter((path) => hasWords(path, text))])].slice(0, size);
}

/** What something is that was found. */
export function Hint({ text }: { readonly text: string }) {
  if (text === '') return null;
  return <Name class="find-hint" text={text} />;
}
