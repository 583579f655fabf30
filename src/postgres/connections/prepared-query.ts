import type pg from 'pg';

export type Callback = (error: Error | null | undefined, result: unknown) => void;

type ParserOf = (type: number, format: 'text') => (text: string) => unknown;

interface Column {
  readonly name: string;
  readonly parse: (text: string) => unknown;
}

/** A statement that a connection's server has prepared, and the columns of its answer, which stay the same. */
export class PreparedStatement {
  readonly name: string;
  readonly text: string;
  readonly fields: readonly pg.FieldDef[];
  readonly columns: readonly Column[];

  constructor({ name, text }: { name: string; text: string }, fields: readonly pg.FieldDef[], parserOf: ParserOf) {
    this.name = name;
    this.text = text;
    this.fields = fields;
    this.columns = fields.map(({ name: column, dataTypeID }) => ({
      name: column,
      parse: parserOf(dataTypeID, 'text'),
    }));
  }
}

/** Values that go out as their text. The driver knows of others. */
export type PlainValue = string | number | boolean | null;

/** Of the values of a statement: all characters of their texts, and how many they are. The driver sends what has more. */
export const maxCharacters = 16_384;
export const maxValues = 100;

// A message is made here and copied. The longest one fits: a character has at most three bytes in UTF-8.
const room = Buffer.allocUnsafe(4 * maxCharacters);
const bind = 'B'.charCodeAt(0);
/** Execute the portal without a name, all rows; then Sync. */
const executeAndSync = Buffer.from('E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04', 'latin1');

/**
 * One execution of a prepared statement that the driver carries out as its own. The driver would ask for a description of the columns each
 * time, and write four messages in place of one.
 */
export class PreparedQuery implements pg.Submittable {
  readonly name: string;
  readonly text: string;
  readonly values: readonly PlainValue[];
  readonly callback: Callback;
  readonly #statement: PreparedStatement;
  readonly #rows: Record<string, unknown>[] = [];
  #fault: Error | undefined;

  constructor(statement: PreparedStatement, values: readonly PlainValue[], callback: Callback) {
    this.name = statement.name;
    this.text = statement.text;
    this.values = values;
    this.callback = callback;
    this.#statement = statement;
  }

  submit({ stream }: pg.Connection): null {
    // If the stream is not writable, the driver is about to hear that the connection is lost.
    if (stream.writable) stream.write(messageOf(this.name, this.values));
    return null;
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    if (this.#fault !== undefined) return;
    try {
      this.#rows.push(this.#rowOf(fields));
    } catch (error) {
      // The answer goes on until the server is ready again.
      this.#fault = error instanceof Error ? error : new Error('a column could not be read', { cause: error });
    }
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    if (this.#fault !== undefined) {
      this.callback(this.#fault, undefined);
      return;
    }
    const rows = this.#rows;
    this.callback(null, { command: 'SELECT', rowCount: rows.length, oid: null, rows, fields: this.#statement.fields });
  }

  handleError(error: Error): void {
    this.callback(error, undefined);
  }

  #rowOf(texts: readonly (string | null)[]): Record<string, unknown> {
    const row: Record<string, unknown> = {};
    const { columns } = this.#statement;
    for (let place = 0; place < columns.length; place++) {
      const [column, text] = [columns[place], texts[place]];
      if (column !== undefined) row[column.name] = text === null || text === undefined ? null : column.parse(text);
    }
    return row;
  }
}

/** Whether the values go out as their texts, and are within both limits. */
export function arePlain(values: readonly unknown[]): values is readonly PlainValue[] {
  let characters = 0;
  for (const value of values) {
    if (typeof value === 'string') characters += value.length;
    else if (value !== null && typeof value !== 'number' && typeof value !== 'boolean') return false;
  }
  return characters <= maxCharacters && values.length <= maxValues;
}

/** Bind, Execute and Sync (PostgreSQL's documentation, "Message Formats"). Values and columns are texts. */
function messageOf(name: string, values: readonly PlainValue[]): Buffer {
  room[0] = bind;
  // The portal without a name.
  room[5] = 0;
  let end = 6 + room.write(name, 6);
  room[end++] = 0;
  // No formats: all values are texts.
  end = room.writeInt16BE(0, end);
  end = room.writeInt16BE(values.length, end);
  for (const value of values) {
    if (value === null) {
      end = room.writeInt32BE(-1, end);
    } else {
      const bytes = room.write(String(value), end + 4);
      end = room.writeInt32BE(bytes, end) + bytes;
    }
  }
  // All columns are texts.
  end = room.writeInt16BE(0, end);
  room.writeInt32BE(end - 1, 1);
  end += executeAndSync.copy(room, end);
  const message = Buffer.allocUnsafe(end);
  room.copy(message, 0, 0, end);
  return message;
}
