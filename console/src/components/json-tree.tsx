import { JsonNumber, type JsonValue } from '@annals/client/json';
import { useMemo, useState } from 'preact/hooks';
import { isContainer, type JsonContainer } from '../compare/compare-documents.ts';
import { isObjectList, type ListSide, ListTable, type ListWords, type ObjectList } from '../compare/list-table.tsx';
import { type Items, itemsOf, LazyList } from './lazy-list.tsx';
import { LinesView } from './lines-view.tsx';
import { placeOfMark } from './marks.ts';
import { counted, countText } from './numbers.ts';
import { Text } from './text.tsx';

/** Characters of a string before the reader asks for all of it. */
const shortString = 400;
/** Characters of one paragraph. A longer one takes the browser seconds to lay out, so it is shown by lines. */
const maxParagraph = 20_000;
/** Characters of a line of a long string. */
const lineLength = 100;

interface JsonTreeProps {
  readonly value: JsonValue;
  /** Levels that are open at first. */
  readonly open?: number;
  /** Members that are shown at first. A container with more is closed until the reader opens it. */
  readonly room?: number;
}

/**
 * A JSON value as it was written: every digit, members in their order. Containers are made when they are opened. Lists
 * of objects are tables.
 */
export function JsonTree({ value, open = 2, room = 200 }: JsonTreeProps) {
  return (
    <div class="json-tree">
      <Node value={value} open={open} room={room} />
    </div>
  );
}

interface NodeProps {
  readonly name?: string | undefined;
  readonly value: JsonValue;
  readonly open: number;
  readonly room: number;
}

function Node({ name, value, open, room }: NodeProps) {
  if (!isContainer(value) || sizeOf(value) === 0) {
    return (
      <div>
        <Key name={name} />
        <JsonScalar value={value} />
      </div>
    );
  }
  return <Container name={name} value={value} open={open} room={room} />;
}

function Container({ name, value, open, room }: NodeProps & { readonly value: JsonContainer }) {
  const size = sizeOf(value);
  const [isOpen, setOpen] = useState(open > 0 && size <= room);
  const isList = useMemo(() => isObjectList(value), [value]);
  const summary = Array.isArray(value) ? `[ ${countText(size)} ]` : `{ ${countText(size)} }`;
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Key name={name} />
        <span class="json-size">{summary}</span>
      </summary>
      {isOpen ? (
        <div class="json-members">
          {isList ? (
            <ObjectTable before={value as ObjectList} after={value as ObjectList} label={`The list ${name ?? ''}`} />
          ) : (
            <LazyList
              items={membersOf(value)}
              render={([key, member]) => (
                <Node key={key} name={key} value={member} open={open - 1} room={Math.floor(room / size)} />
              )}
            />
          )}
        </div>
      ) : undefined}
    </details>
  );
}

const listWords: ListWords = {
  added: 'Added',
  removed: 'Removed',
  changed: 'Changed',
  moved: 'Moved',
  change: 'Change',
  place: 'Place',
  moreRows: (count) => `Show ${counted(count, 'more row')}`,
  sameRows: (count) => `Show ${counted(count, 'unchanged row')}`,
  moreColumns: (count) => `Show ${counted(count, 'more column')}`,
};

interface ObjectTableProps {
  readonly before: ObjectList;
  /** The same list as before: nothing is compared. */
  readonly after: ObjectList;
  readonly label: string;
}

/** A list of objects, or what changed in it, as a table. */
export function ObjectTable({ before, after, label }: ObjectTableProps) {
  return (
    <ListTable
      before={before}
      after={after}
      label={label}
      words={listWords}
      heading={(name) => (
        <bdi>
          <Text text={name} />
        </bdi>
      )}
      cell={(value, _name, side) => <ListCell value={value} side={side} />}
    />
  );
}

function ListCell({ value, side }: { readonly value: JsonValue; readonly side: ListSide }) {
  const Tag = side === 'before' ? 'del' : side === 'after' ? 'ins' : 'span';
  const isPlainList = Array.isArray(value) && value.length > 0 && !value.some(isContainer);
  return (
    <Tag>
      {isPlainList ? (
        value.map((item, index) => (
          <span key={index}>
            {index === 0 ? undefined : ', '}
            <JsonScalar value={item} isQuoted={false} />
          </span>
        ))
      ) : isContainer(value) ? (
        <JsonTree value={value} open={0} />
      ) : (
        <JsonScalar value={value} isQuoted={false} />
      )}
    </Tag>
  );
}

function Key({ name }: { readonly name: string | undefined }) {
  if (name === undefined) return null;
  return (
    <span class="json-key">
      <bdi>
        <Text text={name} />
      </bdi>
      :{' '}
    </span>
  );
}

interface JsonScalarProps {
  readonly value: JsonValue;
  /** Whether a string has its quotes. */
  readonly isQuoted?: boolean;
}

/** A value without members: a string, a number, true, false, null, or an empty container. */
export function JsonScalar({ value, isQuoted = true }: JsonScalarProps) {
  const [whole, setWhole] = useState(() => typeof value === 'string' && placeOfMark(value) >= 0);
  if (value instanceof JsonNumber) return <span class="json-number">{value.text}</span>;
  if (typeof value === 'string') {
    const isLong = value.length > maxParagraph;
    const isCut = value.length > shortString && (isLong || !whole);
    return (
      <>
        <span class="json-string">
          {isQuoted ? <Quote /> : undefined}
          <bdi>
            <Text text={isCut ? value.slice(0, shortString) : value} />
          </bdi>
          {isCut || !isQuoted ? undefined : <Quote />}
          {isCut && !whole ? (
            <button type="button" class="more" onClick={() => setWhole(true)}>
              … all {countText(value.length)} characters
            </button>
          ) : undefined}
        </span>
        {isLong && whole ? (
          <LinesView text={value} label={`All ${countText(value.length)} characters`} maxLength={lineLength} />
        ) : undefined}
      </>
    );
  }
  if (isContainer(value)) return <span class="json-size">{Array.isArray(value) ? '[ ]' : '{ }'}</span>;
  return <span class="json-word">{String(value)}</span>;
}

/** Stands around a string: without it, the text `10` is the number 10 to those who see no colours. */
export function Quote() {
  return <span class="json-quote">"</span>;
}

function sizeOf(value: JsonContainer): number {
  return Array.isArray(value) ? value.length : value.size;
}

/** The members with their keys. A copy of some hundred thousands would hold the page. */
function membersOf(value: JsonContainer): Items<readonly [string, JsonValue]> {
  if (value instanceof Map) return itemsOf(value);
  return {
    length: value.length,
    slice: (from, until) => value.slice(from, until).map((member, index) => [String(from + index), member] as const),
  };
}
