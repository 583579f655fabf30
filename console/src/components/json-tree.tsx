import { JsonNumber, type JsonValue } from '@annals/client/json';
import { useState } from 'preact/hooks';
import { LazyList } from './lazy-list.tsx';
import { Text } from './name.tsx';
import { countText } from './numbers.ts';

/** Characters of a string before the reader asks for all of it. */
const shortString = 400;

/** A JSON value as it was written: every digit, members in their order. Containers are made when they are opened. */
export function JsonTree({ value, open = 2 }: { readonly value: JsonValue; readonly open?: number }) {
  return (
    <div class="json-tree">
      <Node value={value} open={open} />
    </div>
  );
}

interface NodeProps {
  readonly name?: string | undefined;
  readonly value: JsonValue;
  /** Levels that are open at first. */
  readonly open: number;
}

function Node({ name, value, open }: NodeProps) {
  if (!isContainer(value) || sizeOf(value) === 0) {
    return (
      <div class="json-row">
        <Key name={name} />
        <JsonScalar value={value} />
      </div>
    );
  }
  return <Container name={name} value={value} open={open} />;
}

function Container({ name, value, open }: NodeProps & { readonly value: JsonValue[] | Map<string, JsonValue> }) {
  const [isOpen, setOpen] = useState(open > 0 && sizeOf(value) <= 200);
  const size = sizeOf(value);
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
            items={[...value.entries()]}
            portion={100}
            render={([key, member]) => <Node key={key} name={String(key)} value={member} open={open - 1} />}
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
    const isCut = !whole && value.length > shortString;
    return (
      <span class="json-string">
        <Quote />
        <bdi>
          <Text text={isCut ? value.slice(0, shortString) : value} />
        </bdi>
        {isCut ? undefined : <Quote />}
        {isCut ? (
          <button type="button" class="more" onClick={() => setWhole(true)}>
            … all {countText(value.length)} characters
          </button>
        ) : undefined}
      </span>
    );
  }
  if (isContainer(value)) return <span class="json-size">{Array.isArray(value) ? '[ ]' : '{ }'}</span>;
  return <span class="json-word">{String(value)}</span>;
}

/** Stands around a string: without it, the text `10` is the number 10 to those who see no colours. */
export function Quote() {
  return <span class="json-quote">"</span>;
}

export function isContainer(value: JsonValue): value is JsonValue[] | Map<string, JsonValue> {
  return Array.isArray(value) || value instanceof Map;
}

function sizeOf(value: JsonValue[] | Map<string, JsonValue>): number {
  return Array.isArray(value) ? value.length : value.size;
}
