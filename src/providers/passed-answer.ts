import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';
import { TimeSlice } from '../core/fairness/time-slice.ts';
import { parseJsonInSlices } from '../core/json/parse-in-slices.ts';
import type { Adapter } from './adapter.ts';
import { messagesIn } from './answer-body.ts';
import { answerLimits, hasMoreValues } from './answer-limits.ts';
import type { HttpExchange, PassingReader } from './http-exchange.ts';
import { laterUsage, memberOf, parsed } from './members.ts';
import type { Answer, VendorError, VendorHeaders } from './port.ts';

/** What Annals reads of a format whose answers it passes on. */
export interface PassedFormat extends Pick<Adapter, 'usageIn' | 'usageOf' | 'faultOfRefusal'> {
  /** The key, and what else the vendor requires. */
  requiredHeaders(apiKey: string): Record<string, string>;
  isAnswer(answer: unknown): boolean;
  isEvent(event: unknown): boolean;
  /** The status of the error that an answer or an event reports; undefined without one. */
  statusOfError(value: unknown): number | undefined;
  /** Whether the event carries a part of the answer. */
  hasPart(event: unknown): boolean;
  /** Whether the event has nothing but figures. */
  isUsageAlone(event: unknown): boolean;
  /** Why a whole answer ended, or a stream with this event; undefined where it goes on. */
  finishOf(value: unknown): Answer['finishReason'] | undefined;
  ends(): PassedEnds;
  /** Of an answer that is not streamed; left out: those of a conversation. */
  readonly limits?: PassingReader['limits'];
}

/** Reads the events of a stream for its end. */
export interface PassedEnds {
  read(event: unknown): void;
  readonly isComplete: boolean;
  /** Whether the last figures were read, where they come before the end. */
  readonly hasLastUsage?: boolean;
}

export interface PassedAnswerOptions {
  readonly format: PassedFormat;
  /** The key of the call, which no text that is passed on may have. */
  readonly apiKey: string;
  /** The server may be anything: what is not in the format is not passed on. */
  readonly isServerOfTenant: boolean;
  /** Whether the event with the figures is taken out, because Annals asked for it and the client did not. */
  readonly hidesUsage: boolean;
}

/** An answer on its way to the client as it was sent. Only its end, its figures and its errors are read. */
export class PassedAnswer implements PassingReader {
  isOver = false;
  isKnown = false;
  /** The answer, where it is not streamed. */
  text = '';
  /** Whether a part of the answer was read. */
  hasPart = false;
  finishReason: Answer['finishReason'] | undefined;
  readonly limits: PassingReader['limits'];
  readonly #options: PassedAnswerOptions;
  readonly #search: SecretSearch;
  readonly #ends: PassedEnds;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #exchange: HttpExchange | undefined;
  #isDone = false;
  #isBroken = false;
  /** The event that is being read, and how many of its characters were passed on. */
  #event = '';
  #passed = 0;
  /** The last characters of it, with which a blank line may begin. */
  #last = '';

  constructor(options: PassedAnswerOptions) {
    this.#options = options;
    this.limits = options.format.limits ?? { bytes: answerLimits.passedBytes, values: answerLimits.passedValues };
    this.#search = searchFor(options.apiKey);
    this.#ends = options.format.ends();
  }

  get isComplete(): boolean {
    return (this.#isDone || this.#ends.isComplete) && !this.#isBroken;
  }

  begin(exchange: HttpExchange, headers: IncomingHttpHeaders): void {
    this.#exchange = exchange;
    exchange.headers = this.#headersOf(headers);
  }

  async whole(bytes: Buffer): Promise<boolean> {
    const { format } = this.#options;
    const text = bytes.toString('utf8');
    const answer = isUtf8(bytes) ? await this.#parsed(text) : undefined;
    this.#noteUsage(answer);
    if (this.#hasFailed(answer)) return false;
    this.isKnown = format.isAnswer(answer);
    if (!this.isKnown || this.#search.finds(text)) return false;
    this.finishReason = format.finishOf(answer);
    this.text = text;
    return true;
  }

  read(bytes: Uint8Array): string {
    return this.#decoded(() => this.#decoder.decode(bytes, { stream: true }));
  }

  /** Reads the last event, which need not end with a blank line. */
  end(): string {
    const passed = this.#decoded(() => this.#decoder.decode());
    if (this.#event === '' || this.isOver) return passed;
    const last = this.#take();
    // What was cut off in the middle would be read together with what follows.
    return this.isComplete ? passed + last : passed;
  }

  errorIn(body: string): VendorError | undefined {
    const { isServerOfTenant } = this.#options;
    const value = parsed(body);
    const reported = memberOf(value, 'error') ?? memberOf(memberOf(value, 'response'), 'error') ?? value;
    const error = { message: '', type: null, param: null, code: null } as Record<keyof VendorError, string | null>;
    for (const name of ['message', 'type', 'param', 'code'] as const) {
      const member = memberOf(reported, name) ?? null;
      // Some servers send the status as the code.
      const text = name === 'code' && typeof member === 'number' ? String(member) : member;
      const isText = typeof text === 'string' && !(isServerOfTenant && text.length > maxErrorText);
      if (text !== null && !isText) return undefined;
      error[name] = text?.toWellFormed() ?? null;
    }
    const { message } = error;
    if (message === null || message === '' || refusedKey.test(error.type ?? '')) return undefined;
    return this.#search.finds(body) || this.#search.finds(JSON.stringify(reported)) ? undefined : { ...error, message };
  }

  async #parsed(text: string): Promise<unknown> {
    if (text.length <= answerLimits.shortBytes) return parsed(text);
    return await parseJsonInSlices(text, new TimeSlice()).catch(() => undefined);
  }

  #decoded(decode: () => string): string {
    let text = '';
    try {
      text = decode();
    } catch {
      this.#break();
    }
    let passed = '';
    while (!this.isOver) {
      // Only what is new: to search a long event after each piece takes the square of its length.
      const searched = this.#last + text;
      blankLine.lastIndex = 0;
      if (blankLine.exec(searched) === null) break;
      const end = blankLine.lastIndex;
      // A line feed may belong to it.
      if (end === searched.length && searched.endsWith('\n\r')) break;
      const length = end - this.#last.length;
      this.#event += text.slice(0, length);
      text = text.slice(length);
      this.#last = '';
      passed += this.#take();
    }
    this.#event += text;
    this.#last = (this.#last + text).slice(1 - longestBlank);
    return this.isOver ? passed : passed + this.#begun();
  }

  /** What is passed on of an event before its end. */
  #begun(): string {
    const length = this.#event.length - this.#passed;
    if (length < answerLimits.begunEventBytes || this.#options.isServerOfTenant) return '';
    if (this.#findsSecret(this.#event)) return this.#break();
    const text = this.#event.slice(this.#passed);
    this.#passed = this.#event.length;
    return text;
  }

  /** Reads the event, which is whole. Returns what is to be passed on. */
  #take(): string {
    const text = this.#event;
    const rest = text.slice(this.#passed);
    const isPassed = this.#readEvent(text);
    if (isPassed && this.#findsSecret(text)) return this.#break();
    this.#event = '';
    this.#passed = 0;
    return isPassed ? rest : '';
  }

  /** Returns whether the event is passed on. */
  #readEvent(text: string): boolean {
    const { format, isServerOfTenant, hidesUsage } = this.#options;
    if (text.length > answerLimits.shortBytes && hasMoreValues(Buffer.from(text), answerLimits.wholeValues)) {
      this.#break();
      return false;
    }
    const { data, isNamed } = fieldsOf(text);
    let isPassed = !isServerOfTenant;
    for (const message of messagesIn(data)) {
      if (message.trim() === '[DONE]') {
        this.isKnown = true;
        this.#isDone = true;
        this.isOver = true;
        return true;
      }
      const event = parsed(message);
      // An event of an unknown type need not be JSON.
      if (event === undefined) this.#isBroken ||= !isNamed;
      this.#noteUsage(event);
      if (this.#hasFailed(event)) {
        this.isOver = true;
        return false;
      }
      if (format.isEvent(event)) {
        this.isKnown = true;
        isPassed = true;
      }
      this.#ends.read(event);
      if (this.#ends.hasLastUsage === true && this.#exchange !== undefined) this.#exchange.hasLastUsage = true;
      this.hasPart ||= format.hasPart(event);
      this.finishReason = format.finishOf(event) ?? this.finishReason;
      if (hidesUsage && this.#passed === 0 && format.isUsageAlone(event)) isPassed = false;
    }
    return isPassed;
  }

  #hasFailed(value: unknown): boolean {
    const status = this.#options.format.statusOfError(value);
    if (status === undefined || this.#exchange === undefined) return false;
    const body = JSON.stringify(value);
    this.#exchange.refusal = { status, retryAfter: undefined, body, hasBegun: true };
    return true;
  }

  #noteUsage(value: unknown): void {
    // After the end nothing counts.
    if (this.#exchange === undefined || (this.#ends.isComplete && this.#ends.hasLastUsage === true)) return;
    this.#exchange.usage = laterUsage(this.#exchange.usage, this.#options.format.usageIn(value));
  }

  /** Searches what was not yet passed on, with what a key may begin in. */
  #findsSecret(text: string): boolean {
    return this.#search.finds(text.slice(Math.max(0, this.#passed - this.#search.longest)));
  }

  #break(): string {
    this.#isBroken = true;
    this.isOver = true;
    return '';
  }

  #headersOf(headers: IncomingHttpHeaders): VendorHeaders {
    return Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) =>
        passedHeaders.test(name) &&
        typeof value === 'string' &&
        /^[\x20-\x7e]{1,256}$/.test(value) &&
        !this.#search.finds(value)
          ? [[name, value]]
          : [],
      ),
    );
  }
}

const passedHeaders =
  /^(?:x-request-id|request-id|openai-processing-ms|retry-after(?:-ms)?|(?:x|anthropic)-ratelimit-[a-z0-9-]{1,64})$/;

/** Types of errors that may show a part of the key, whatever their status. */
const refusedKey = /^(?:authentication|permission)_error$/;

/** Characters of each member of an error of a server that may be anything. */
const maxErrorText = 500;

const blankLine = /(?:\r\n|\n|\r(?!\n)){2}/g;
const longestBlank = '\r\n\r\n'.length;

/** The data of an event, and whether the event has a name. */
function fieldsOf(text: string): { data: string; isNamed: boolean } {
  const data: string[] = [];
  let isNamed = false;
  for (const line of text.replace(/^\ufeff/, '').split(/\r\n|\n|\r/)) {
    const [, field, value = ''] = /^(data|event)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'data') data.push(value);
    if (field === 'event') isNamed = value !== '' && value !== 'message';
  }
  return { data: data.join('\n'), isNamed };
}

/** Characters. A shorter key is a placeholder, such as that of a server without keys, and would be found in any text. */
const minSecret = 8;

const maxSearches = 100;
// Milliseconds. A key that is no longer used does not stay in memory.
const searchTime = 60_000;
const searches = new LRUCache<string, SecretSearch>({ max: maxSearches, ttl: searchTime });

/** The forms of a key take longer to write than an answer to search. */
function searchFor(key: string): SecretSearch {
  const known = searches.get(key);
  if (known !== undefined) return known;
  const search = new SecretSearch(key);
  searches.set(key, search);
  return search;
}

/** Finds a key in a text: as it is, in base64 at each offset, and with any of its characters escaped. */
class SecretSearch {
  readonly #forms: readonly string[];
  readonly #escaped: RegExp;
  /** The most characters of a form: JSON writes one in six. */
  readonly longest: number;

  constructor(key: string) {
    const base64 = base64Of(key);
    const forms = [
      key,
      JSON.stringify(key).slice(1, -1),
      ...base64,
      ...base64.map((form) => form.replaceAll('/', '\\/')),
    ];
    const isSecret = key.length >= minSecret;
    this.#forms = isSecret ? [...new Set(forms)] : [];
    this.#escaped = new RegExp(isSecret ? [...key].map(escapesOf).join('') : '(?!)');
    this.longest = 6 * key.length;
  }

  finds(text: string): boolean {
    return this.#forms.some((form) => text.includes(form)) || (anyEscape.test(text) && this.#escaped.test(text));
  }
}

/** Of JSON or of a URL. */
const anyEscape = /\\[u/]|%[\da-fA-F]{2}/;

/** A pattern of a character of a key, which is ASCII, as it is or escaped. */
function escapesOf(character: string): string {
  const hex = character
    .charCodeAt(0)
    .toString(16)
    .padStart(2, '0')
    .replace(/[a-f]/, (digit) => `[${digit}${digit.toUpperCase()}]`);
  const plain = RegExp.escape(character);
  return `(?:${plain}|\\\\${plain}|\\\\u00${hex}|%${hex})`;
}

/** The characters that a key gives to the base64 of any text with it, in both alphabets. */
function base64Of(key: string): string[] {
  const bytes = Buffer.from(key);
  return [0, 1, 2].flatMap((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes]);
    // The first and the last characters have bits of other bytes too.
    const [from, to] = [Math.ceil((before * 4) / 3), Math.floor((whole.length * 4) / 3)];
    return (['base64', 'base64url'] as const).map((alphabet) => whole.toString(alphabet).slice(from, to));
  });
}
