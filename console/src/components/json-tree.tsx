import { JsonNumber, type JsonValue } from '@annals/client/json';
import { useState } from 'preact/hooks';
import { isContainer, type JsonContainer } from '../compare/compare-documents.ts';
import { type Items, itemsOf, LazyList } from './lazy-list.tsx';
import { LinesView } from './lines-view.tsx';
import { countText } from './numbers.ts';
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

/** A JSON value as it was written: every digit, members in their order. Containers are made when they are opened. */
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
  const summary = Array.isArray(value) ? `[ ${countText(size)} ]` : `{ ${countText(size)} }`;
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Key name={name} />
        <span class="json-size">{summary}</span>
      </summary>
      {isOpen ? (
        <div class="json-members">
          <LazyList
            items={membersOf(value)}
            render={([key, member]) => (
              <Node key={key} name={key} value={member} open={open - 1} room={Math.floor(room / size)} />
            )}
          />
        </div>
      ) : undefined}
    </details>
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

/** A value without members: a string, a number, true, false, null, or an empty container. */
export function JsonScalar({ value }: { readonly value: JsonValue }) {
  const [whole, setWhole] = useState(false);
  if (value instanceof JsonNumber) return <span class="json-number">{value.text}</span>;
  if (typeof value === 'string') {
    const isLong = value.length > maxParagraph;
    const isCut = value.length > shortString && (isLong || !whole);
    return (
      <>
        <span class="json-string">
          <Quote />
          <bdi>
            <Text text={isCut ? value.slice(0, shortString) : value} />
          </bdi>
          {isCut ? undefined : <Quote />}
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
