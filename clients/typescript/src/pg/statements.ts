/**
 * `write`: changes rows by itself. `begin`: opens a transaction. `end`: leaves it, or a part of it. `quiet`: has no
 * snapshot and writes nothing, or must not be preceded by what has one. `other`: may write by a function.
 */
export type StatementKind = 'write' | 'begin' | 'end' | 'quiet' | 'other';

export interface Statement {
  readonly kind: StatementKind;
  /** Whether the text is certain to have no second statement. */
  readonly isSingle: boolean;
  /** Whether the server takes it with a setting before it, in one implicit transaction. */
  readonly isRowStatement: boolean;
}

const kinds: ReadonlyMap<string, StatementKind> = new Map<string, StatementKind>([
  ...['insert', 'update', 'delete', 'merge', 'truncate'].map((word) => [word, 'write'] as const),
  ...['begin', 'start'].map((word) => [word, 'begin'] as const),
  ...['commit', 'end', 'rollback', 'abort'].map((word) => [word, 'end'] as const),
  ...['set', 'show', 'reset', 'lock', 'savepoint', 'release', 'declare', 'fetch', 'move', 'close'].map(
    (word) => [word, 'quiet'] as const,
  ),
  ...['prepare', 'deallocate', 'discard', 'listen', 'unlisten', 'notify', 'vacuum', 'analyze'].map(
    (word) => [word, 'quiet'] as const,
  ),
]);

const rowWords: ReadonlySet<string> = new Set(['insert', 'update', 'delete', 'merge']);

const firstWord = /^\s*([a-z]+)/i;

/** What a text's first statement does. A mistake costs a round trip or an actor, never a failed statement. */
export function readStatement(text: string): Statement {
  const [, word = firstTokenOf(text)] = firstWord.exec(text) ?? [];
  const first = word.toLowerCase();
  const kind = first === 'with' || first === 'copy' ? kindByTokens(text, first) : (kinds.get(first) ?? 'other');
  return {
    kind,
    // Read only where it matters: a long text takes a while.
    get isSingle() {
      return isSingle(text);
    },
    isRowStatement: kind === 'write' && (rowWords.has(first) || first === 'with'),
  };
}

function isSingle(text: string): boolean {
  const end = text.indexOf(';');
  if (end === -1 || text.slice(end + 1).trim() === '') return true;
  let hasEnded = false;
  let hasBegun = false;
  for (const { text: token } of tokens(text)) {
    if (token === ';') hasEnded = hasBegun;
    else if (hasEnded) return false;
    else hasBegun = true;
  }
  return true;
}

function firstTokenOf(text: string): string {
  for (const { text: token, isWord } of tokens(text)) if (token !== ';' && token !== '(') return isWord ? token : '';
  return '';
}

/** WITH and COPY write if a further word says so. */
function kindByTokens(text: string, first: string): StatementKind {
  let depth = 0;
  let previous = '';
  for (const { text: written, isWord } of tokens(text)) {
    const token = written.toLowerCase();
    if (token === '(') depth += 1;
    else if (token === ')') depth -= 1;
    else if (token === ';' && previous !== '') break;
    else if (first === 'copy') {
      if (depth === 0 && isWord && token === 'from') return 'write';
      if (depth === 0 && isWord && token === 'to') return 'other';
    } else if (isWord && rowWords.has(token) && startsStatement(depth, previous)) return 'write';
    previous = token;
  }
  return 'other';
}

/** `select … for update` and a column or an alias of that name start none. */
function startsStatement(depth: number, previous: string): boolean {
  return previous === '(' || (depth === 0 && !['for', 'key', 'as', '.', ','].includes(previous));
}

interface Token {
  readonly text: string;
  readonly isWord: boolean;
}

const token =
  /\s+|--[^\n\r]*|(\/\*)|(e'|'|")|(\$(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)|([a-z_\u0080-\uffff][\w$\u0080-\uffff]*)|./gisy;

/** The words and signs of a text, without its comments and literals. */
function* tokens(text: string): Generator<Token> {
  const pattern = new RegExp(token);
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [all, comment, opening, quote, word] = match;
    if (comment !== undefined) pattern.lastIndex = endOfComment(text, match.index);
    else if (quote !== undefined || opening !== undefined) {
      pattern.lastIndex =
        quote === undefined ? endOfLiteral(text, all, pattern.lastIndex) : after(text, quote, pattern.lastIndex);
      yield { text: '', isWord: false };
    } else if (word !== undefined) yield { text: word, isWord: true };
    else if (!/^(?:\s|--)/.test(all)) yield { text: all, isWord: false };
  }
}

/** A doubled quote ends one literal and begins another, which is as good. */
function endOfLiteral(text: string, opening: string, start: number): number {
  if (opening.length === 1) return after(text, opening, start);
  const special = /\\.|'/gs;
  special.lastIndex = start;
  for (let match = special.exec(text); match !== null; match = special.exec(text))
    if (match[0] === "'") return special.lastIndex;
  return text.length;
}

function after(text: string, end: string, start: number): number {
  const index = text.indexOf(end, start);
  return index === -1 ? text.length : index + end.length;
}

/** Comments of PostgreSQL nest. */
function endOfComment(text: string, start: number): number {
  const mark = /\/\*|\*\//g;
  mark.lastIndex = start;
  let depth = 0;
  for (let match = mark.exec(text); match !== null; match = mark.exec(text)) {
    depth += match[0] === '/*' ? 1 : -1;
    if (depth === 0) return mark.lastIndex;
  }
  return text.length;
}
