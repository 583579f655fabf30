// The viewer takes this file as well.

import { type JsonObject, type JsonValue, stringifyJson } from '@annals/client/json';
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { compareLists, type ListRow, memberNames } from '../../../src/core/json/list-changes.ts';

/** Elements and members that a table has at most; a longer list stays JSON. */
const maxElements = 500;
const maxMembers = 50;
/** Values in a member that is an object or a list; a larger one stays JSON. */
const maxInside = 20;

/** Rows and columns that are shown at first. */
const shownRows = 20;
const shownColumns = 8;
/** Up to so many rows those that stayed the same are shown too. */
const maxWithSame = 8;

/** A list of objects, which a table can show. */
export type ObjectList = readonly JsonObject[];

export function isObjectList(value: JsonValue | undefined): value is JsonObject[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > maxElements) return false;
  if (!value.every((item) => item instanceof Map && item.size > 0 && item.size <= maxMembers)) return false;
  const items = value as JsonObject[];
  return (
    memberNames(items).length <= maxMembers &&
    items.every((item) => [...item.values()].every((member) => isSmall(member)))
  );
}

function isSmall(value: JsonValue): boolean {
  const open = [value];
  for (let count = 0; open.length > 0; count += 1) {
    if (count > maxInside) return false;
    const next = open.pop();
    const inside = Array.isArray(next) ? next : next instanceof Map ? [...next.values()] : [];
    if (inside.length > maxInside) return false;
    open.push(...inside);
  }
  return true;
}

/** Two sides of a list of objects, one of which may be missing or empty. Undefined for other values. */
export function objectLists(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
): { readonly before: ObjectList; readonly after: ObjectList } | undefined {
  const [was, is] = [before, after].map((side) =>
    isObjectList(side) ? side : side === undefined || (Array.isArray(side) && side.length === 0) ? [] : undefined,
  );
  if (was === undefined || is === undefined || was.length + is.length === 0) return undefined;
  return { before: was, after: is };
}

/** What a table says, in the reader's language. */
export interface ListWords {
  readonly added: string;
  readonly removed: string;
  readonly changed: string;
  readonly moved: string;
  readonly change: string;
  readonly place: string;
  moreRows(count: number): string;
  sameRows(count: number): string;
  moreColumns(count: number): string;
}

/** The side of a comparison that a value stands on; `same`: it stands on both, or nothing is compared. */
export type ListSide = 'before' | 'after' | 'same';

interface ListTableProps {
  readonly before: ObjectList;
  readonly after: ObjectList;
  /** What the list is, for those who do not see it. */
  readonly label: string;
  readonly words: ListWords;
  readonly heading: (name: string) => ComponentChildren;
  readonly cell: (value: JsonValue, name: string, side: ListSide) => ComponentChildren;
}

/** A list of objects as a table: a row for each, and what became of it. The same list twice is not compared. */
export function ListTable({ before, after, label, words, heading, cell }: ListTableProps) {
  const isCompared = before !== after;
  const rows = useMemo(
    () => (isCompared ? compareLists(before, after, textOf) : after.map(unchangedRow)),
    [before, after, isCompared],
  );
  const names = useMemo(() => memberNames([...after, ...before]), [before, after]);
  const [hasAllRows, setAllRows] = useState(false);
  const [hasAllColumns, setAllColumns] = useState(false);
  const [hasSame, setSame] = useState(!isCompared || rows.length <= maxWithSame);
  const wanted = hasSame ? rows : rows.filter(({ kind }) => kind !== 'same');
  const shown = hasAllRows ? wanted : wanted.slice(0, shownRows);
  const columns = hasAllColumns ? names : names.slice(0, shownColumns);
  const more = [
    [wanted.length - shown.length, words.moreRows, () => setAllRows(true)],
    [rows.length - wanted.length, words.sameRows, () => setSame(true)],
    [names.length - columns.length, words.moreColumns, () => setAllColumns(true)],
  ] as const;
  return (
    <div class="list-table" part="list-table">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it. */}
      <section class="table-scroll" tabIndex={0} aria-label={label}>
        <table class="table">
          <thead>
            <tr>
              {isCompared ? <th scope="col">{words.change}</th> : undefined}
              <th scope="col">{words.place}</th>
              {columns.map((name) => (
                <th key={name} scope="col">
                  {heading(name)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={`${row.from} ${row.to}`} class={`list-row ${row.kind}`}>
                {isCompared ? <td class="list-kind">{kindWords(row, words)}</td> : undefined}
                <td class="list-place">{placeText(row)}</td>
                {columns.map((name) => (
                  <td key={name}>{cellOf(row, name, cell)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {more.map(([count, text, show], index) =>
        count === 0 ? undefined : (
          <button key={index} type="button" class="more link" part="link" onClick={show}>
            {text(count)}
          </button>
        ),
      )}
    </div>
  );
}

function textOf(value: JsonValue): string {
  return stringifyJson(value);
}

function unchangedRow(item: JsonObject, place: number): ListRow<JsonValue> {
  return { kind: 'same', isMoved: false, from: place, to: place, before: item, after: item, changed: new Set() };
}

function kindWords({ kind, isMoved }: ListRow<JsonValue>, words: ListWords): string {
  if (kind === 'same') return '';
  return kind === 'changed' && isMoved ? `${words.changed}, ${words.moved.toLowerCase()}` : words[kind];
}

/** Places are counted from 1, as people do. */
function placeText({ from, to, isMoved }: ListRow<JsonValue>): string {
  if (isMoved && from !== undefined && to !== undefined) return `${from + 1} → ${to + 1}`;
  return String((to ?? from ?? 0) + 1);
}

function cellOf(
  { kind, before, after, changed }: ListRow<JsonValue>,
  name: string,
  cell: ListTableProps['cell'],
): ComponentChildren {
  const [was, is] = [before?.get(name), after?.get(name)];
  if (kind !== 'added' && kind !== 'removed' && !changed.has(name))
    return is === undefined ? undefined : cell(is, name, 'same');
  return (
    <>
      {was === undefined ? undefined : cell(was, name, 'before')}
      {was === undefined || is === undefined ? undefined : <span aria-hidden="true"> → </span>}
      {is === undefined ? undefined : cell(is, name, 'after')}
    </>
  );
}
