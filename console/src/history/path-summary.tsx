import type { JsonValue } from '@annals/client/json';
import { stringifyJson } from '@annals/client/json';
import type { Entry, PathChange } from '../api/history-reads.ts';
import { part } from '../components/lazy-list.tsx';
import { Text } from '../components/name.tsx';
import { counted, countText } from '../components/numbers.ts';
import './path-summary.css';

/** Paths that a line has room for. */
const shown = 3;
/** Characters of a value on a line. */
const maxLength = 48;

/** What a string may not begin with, or be, to stand on a line without quotes: it would be read as another value. */
const otherValue = /^(?:-?\d|[[{"]|(?:true|false|null)$)/;

/** What an entry changed, on one line. */
export function PathSummary({ entry }: { readonly entry: Entry }) {
  const { type, paths } = entry;
  if (paths.size === 0) return <span class="muted">no fields</span>;
  if (type !== 'update') return <span class="muted">{counted(paths.size, 'field')}</span>;
  const first = part(paths, 0, shown);
  return (
    <>
      {first.map(([path, change]) => (
        <span key={path} class="path-change">
          <bdi class="path-name">
            <Text text={path === '' ? '(whole document)' : path} />
          </bdi>{' '}
          <Change change={change} isCut={entry.cut.has(path)} />
        </span>
      ))}
      {paths.size > shown ? <span class="path-more">+{countText(paths.size - shown)} more</span> : undefined}
    </>
  );
}

function Change({ change: { before, after }, isCut }: { readonly change: PathChange; readonly isCut: boolean }) {
  return (
    <>
      {before === undefined ? undefined : (
        <del>
          <ShortValue value={before} isCut={isCut} />
        </del>
      )}
      {before === undefined || after === undefined ? ' ' : <span aria-hidden="true"> → </span>}
      {after === undefined ? undefined : (
        <ins>
          <ShortValue value={after} isCut={isCut} />
        </ins>
      )}
    </>
  );
}

function ShortValue({ value, isCut }: { readonly value: JsonValue; readonly isCut: boolean }) {
  const isPlain = typeof value === 'string' && value !== '' && !otherValue.test(value);
  const text = isPlain ? value : stringifyJson(value);
  const isLong = text.length > maxLength;
  return (
    <bdi>
      <Text text={isLong ? `${text.slice(0, maxLength)}…` : text} />
      {isCut && !isLong ? '…' : ''}
    </bdi>
  );
}
