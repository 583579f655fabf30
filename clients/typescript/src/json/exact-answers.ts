import type { HistoryAnswer, HistoryAnswers } from '../pages/history-page.ts';
import type { ChangeEntry, Configuration, DocumentAtMoment } from '../schemas.ts';
import { type AnswerReader, notJson, parseAnswer } from '../transport/answer-json.ts';
import { ApiError } from '../transport/api-error.ts';
import { type JsonObject, type JsonValue, toPlain } from './json-value.ts';
import { parseJson, parseJsonSteps } from './parse.ts';
import type { Steps } from './steps.ts';

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

/**
 * Answers of the change history with exact values. An answer may have some hundred thousand values, so it is read in
 * steps.
 */
export const exactHistory: HistoryAnswers<ExactChangeEntry, ExactDocumentAtMoment> = {
  *page(text) {
    const answer = objectOf(text, yield* parseInSteps(text));
    const items = answer.get('items');
    if (!Array.isArray(items)) throw notExpected(text);
    const rest = new Map(answer);
    rest.delete('items');
    const plain = toPlain(rest) as Omit<HistoryAnswer<ExactChangeEntry>, 'items'>;
    const entries: ExactChangeEntry[] = [];
    for (const item of items) entries.push(yield* exactEntry(objectOf(text, item)));
    return { ...plain, items: entries };
  },
  *entry(text) {
    return yield* exactEntry(objectOf(text, yield* parseInSteps(text)));
  },
  *document(text) {
    const rest = new Map(objectOf(text, yield* parseInSteps(text)));
    const document = rest.get('document');
    rest.delete('document');
    const plain = toPlain(rest) as Omit<ExactDocumentAtMoment, 'document'>;
    return document === undefined ? plain : { ...plain, document };
  },
};

/** Paths that a step takes. */
const stepSize = 500;

function* exactEntry(entry: JsonObject): Steps<ExactChangeEntry> {
  const rest = new Map(entry);
  rest.delete('paths');
  rest.delete('context');
  const paths = new Map<string, ExactPathValueChange>();
  for (const [path, change] of membersOf(entry.get('paths'))) {
    paths.set(path, Object.fromEntries(membersOf(change)));
    if (paths.size % stepSize === 0) yield;
  }
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

function* parseInSteps(text: string): Steps<JsonValue> {
  try {
    return yield* parseJsonSteps(text);
  } catch (cause) {
    throw notJson(cause);
  }
}

function objectOf(text: string, value: JsonValue): JsonObject {
  if (value instanceof Map) return value;
  throw notExpected(text);
}

function notExpected(text: string): ApiError {
  return new ApiError('invalid_answer', `The service answered with something else: ${text.slice(0, 40)}`);
}
