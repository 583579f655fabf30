import { type JsonValue, type Steps, stringifyJson } from '@annals/client/json';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { PathChange } from '../api/history-reads.ts';
import { giveWay, useInSlices } from '../api/requests.ts';
import { CopyButton } from '../components/buttons.tsx';
import { JsonScalar, JsonTree, ObjectTable, Quote } from '../components/json-tree.tsx';
import { type Items, LazyList } from '../components/lazy-list.tsx';
import { placeOfMark } from '../components/marks.ts';
import { counted, countText } from '../components/numbers.ts';
import { Text } from '../components/text.tsx';
import { isContainer } from './compare-documents.ts';
import { type ComparedTexts, compareWords, type WordRun } from './compare-words.ts';
import { objectLists } from './list-table.tsx';
import './compare.css';

type Paths = Items<readonly [string, PathChange]>;

/** From so many paths on one may look for some by their name. */
const minSearched = 40;

interface PathChangesProps {
  readonly paths: Paths;
  /** Drawn below the values of a path. */
  readonly below?: (path: string, change: PathChange) => ComponentChildren;
}

/** Paths with their two values, made as the reader comes to them. */
export function PathChanges({ paths, below }: PathChangesProps) {
  const [part, setPart] = useState('');
  const found = useInSlices(() => findPaths(paths, part), [paths, part]).value;
  return (
    <div class="form-grid">
      {paths.length < minSearched ? undefined : (
        <div class="path-search">
          <input
            type="search"
            class="control"
            aria-label="Find a path"
            placeholder="Find a path"
            value={part}
            onInput={(event) => setPart(event.currentTarget.value)}
          />
          <span class="muted number" role="status">
            {part === '' || found === undefined ? '' : counted(found.length, 'path')}
          </span>
        </div>
      )}
      <LazyList
        key={part}
        items={found ?? []}
        portion={30}
        render={([path, change]) => (
          <section key={path} class="path-item">
            <header>
              <h2>
                <bdi>
                  <Text text={path === '' ? '(whole document)' : path} />
                </bdi>
              </h2>
              <CopyButton what={`the value of ${path}`} text={() => copied(change)} />
            </header>
            <ValueChange path={path} before={change.before} after={change.after} />
            {below?.(path, change)}
          </section>
        )}
      />
    </div>
  );
}

/** What it became; of a path that is gone, what it was. A string without its quotes. */
function copied({ before, after }: PathChange): string {
  const value = after ?? before ?? null;
  return typeof value === 'string' ? value : stringifyJson(value, 2);
}

/** Paths that a step looks at. */
const stepSize = 500;

/** The paths whose names contain a part, ignoring case. An empty part finds all. */
function* findPaths(paths: Paths, part: string): Steps<Paths> {
  if (part === '') return paths;
  const lower = part.toLowerCase();
  const found: (readonly [string, PathChange])[] = [];
  const all = paths.slice(0, paths.length);
  for (const [index, path] of all.entries()) {
    if (path[0].toLowerCase().includes(lower)) found.push(path);
    if (index % stepSize === stepSize - 1) yield;
  }
  return found;
}

interface ValueChangeProps {
  readonly path: string;
  /** Undefined where the path did not exist, which is not null. */
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

/** Members of a value that are shown at first, of many values on one page. */
const room = 20;

/** What a value was and what it became. */
function ValueChange({ path, before, after }: ValueChangeProps) {
  const lists = useMemo(() => objectLists(before, after), [before, after]);
  const compared = useComparedWords(before, after);
  if (lists !== undefined) return <ObjectTable {...lists} label={`The list ${path}`} />;
  return (
    <div class="value-change">
      {before === undefined ? undefined : <Side kind="removed" value={before} runs={compared?.before} />}
      {after === undefined ? undefined : <Side kind="added" value={after} runs={compared?.after} />}
    </div>
  );
}

interface SideProps {
  readonly kind: 'removed' | 'added';
  readonly value: JsonValue;
  readonly runs: readonly WordRun[] | undefined;
}

function Side({ kind, value, runs }: SideProps) {
  return (
    <div class={`value-side ${kind}`}>
      <span class="value-sign">
        <span aria-hidden="true">{kind === 'removed' ? '−' : '+'}</span>
        <span class="visually-hidden">{kind === 'removed' ? 'Before' : 'After'}</span>
      </span>
      {runs === undefined ? (
        isContainer(value) ? (
          <JsonTree value={value} open={1} room={room} />
        ) : (
          <JsonScalar value={value} />
        )
      ) : (
        <span>
          <Quote />
          <Runs runs={runs} />
          <Quote />
        </span>
      )}
    </div>
  );
}

/** Characters of an unchanged run that stay at each of its ends. */
const context = 120;

function Runs({ runs }: { readonly runs: readonly WordRun[] }) {
  const [whole, setWhole] = useState(() => runs.some(({ text }) => placeOfMark(text) >= 0));
  return (
    <bdi class="value-words">
      {runs.map(({ text, changed }, index) => {
        if (changed) {
          return (
            <mark key={index}>
              <Text text={text} />
            </mark>
          );
        }
        if (whole || text.length <= 3 * context) return <Text key={index} text={text} />;
        const isFirst = index === 0;
        const isLast = index === runs.length - 1;
        return (
          <span key={index}>
            {isFirst ? undefined : <Text text={text.slice(0, context)} />}
            <button type="button" class="more" onClick={() => setWhole(true)}>
              … {countText(text.length - (isFirst || isLast ? context : 2 * context))} characters …
            </button>
            {isLast ? undefined : <Text text={text.slice(-context)} />}
          </span>
        );
      })}
    </bdi>
  );
}

/** Strings at least this long together are compared word by word. */
const minLength = 12;
/** Strings that are shorter are compared before they are drawn. */
const maxAtOnce = 600;

/** Compares two strings word by word, long ones after they are drawn. Undefined until then, and if it does not help. */
function useComparedWords(before: JsonValue | undefined, after: JsonValue | undefined): ComparedTexts | undefined {
  const pair = useMemo(
    () =>
      typeof before === 'string' && typeof after === 'string' && before.length + after.length >= minLength
        ? ([before, after] as const)
        : undefined,
    [before, after],
  );
  const isShort = pair !== undefined && pair[0].length + pair[1].length <= maxAtOnce;
  const atOnce = useMemo(() => (isShort ? compareWords(...pair) : undefined), [pair, isShort]);
  const [later, setLater] = useState<{ readonly of: typeof pair; readonly compared: ComparedTexts | undefined }>();
  useEffect(() => {
    if (pair === undefined || isShort) return;
    let isWanted = true;
    void giveWay().then(() => {
      if (isWanted) setLater({ of: pair, compared: compareWords(...pair) });
    });
    return () => {
      isWanted = false;
    };
  }, [pair, isShort]);
  return atOnce ?? (later?.of === pair ? later?.compared : undefined);
}
