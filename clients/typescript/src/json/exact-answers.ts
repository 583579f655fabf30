import type { HistoryAnswer, HistoryAnswers } from '../pages/history-page.ts';
import type { ChangeEntry, Configuration, DocumentAtMoment } from '../schemas.ts';
import { type AnswerReader, parseAnswer } from '../transport/answer-json.ts';
import { ApiError } from '../transport/api-error.ts';
import { type JsonObject, type JsonValue, toPlain } from './json-value.ts';
import { parseJson } from './parse.ts';

/** A change entry whose values are as they were written. */
export interface ExactChangeEntry extends Omit<ChangeEntry, 'paths' | 'context'> {
  /** By path, in the order of the entry. */
  readonly paths: ReadonlyMap<string, ExactPathValueChange>;
  readonly context?: JsonObject;
}

export interface ExactPathValueChange {
  readonly before?: JsonValue;
  readonly after?: JsonValue;
}

/** A document as it was, with its values as they were written. */
export interface ExactDocumentAtMoment extends Omit<DocumentAtMoment, 'document'> {
  readonly document?: JsonValue;
}

/** A setting whose value is as it was written. */
export interface ExactConfiguration extends Omit<Configuration, 'value'> {
  readonly value: JsonValue;
}

/** Answers of the change history with exact values. */
export const exactHistory: HistoryAnswers<ExactChangeEntry, ExactDocumentAtMoment> = {
  page: readExactHistory,
  entry: (text) => exactEntry(objectOf(text, parse(text))),
  document(text) {
    const rest = new Map(objectOf(text, parse(text)));
    const document = rest.get('document');
    rest.delete('document');
    const plain = toPlain(rest) as Omit<ExactDocumentAtMoment, 'document'>;
    return document === undefined ? plain : { ...plain, document };
  },
};

function readExactHistory(text: string): HistoryAnswer<ExactChangeEntry> {
  const answer = objectOf(text, parse(text));
  const items = answer.get('items');
  if (!Array.isArray(items)) throw notExpected(text);
  const rest = new Map(answer);
  rest.delete('items');
  const plain = toPlain(rest) as Omit<HistoryAnswer<ExactChangeEntry>, 'items'>;
  return { ...plain, items: items.map((item) => exactEntry(objectOf(text, item))) };
}

function exactEntry(entry: JsonObject): ExactChangeEntry {
  const rest = new Map(entry);
  rest.delete('paths');
  rest.delete('context');
  const paths = new Map<string, ExactPathValueChange>();
  for (const [path, change] of membersOf(entry.get('paths'))) paths.set(path, Object.fromEntries(membersOf(change)));
  const context = entry.get('context');
  return {
    ...(toPlain(rest) as Omit<ExactChangeEntry, 'paths' | 'context'>),
    paths,
    ...(context instanceof Map ? { context } : {}),
  };
}

function membersOf(value: JsonValue | undefined): JsonObject {
  return value instanceof Map ? value : new Map();
}

export const exactConfigurations: AnswerReader<ExactConfiguration> = {
  one: (text) => exactConfiguration(objectOf(text, parse(text))),
  many: (text) => exactObjects.many(text).map(exactConfiguration),
};

function exactConfiguration(item: JsonObject): ExactConfiguration {
  const rest = new Map(item);
  rest.delete('value');
  return { ...(toPlain(rest) as Omit<ExactConfiguration, 'value'>), value: item.get('value') ?? null };
}

export const exactObjects: AnswerReader<JsonObject> = {
  one: (text) => objectOf(text, parse(text)),
  many(text) {
    const list = parse(text);
    if (!Array.isArray(list)) throw notExpected(text);
    return list.map((item) => objectOf(text, item));
  },
};

function parse(text: string): JsonValue {
  return parseAnswer(text, parseJson);
}

function objectOf(text: string, value: JsonValue): JsonObject {
  if (value instanceof Map) return value;
  throw notExpected(text);
}

function notExpected(text: string): ApiError {
  return new ApiError('invalid_answer', `The service answered with something else: ${text.slice(0, 40)}`);
}
