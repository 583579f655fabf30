import * as ast from '../../../src/query/ast.ts';
import { plainFieldName } from '../../../src/query/written.ts';

/**
 * A query as it might be thought of before it is written down. `writeQuery` writes it and says what the
 * parser should make of it, positions included.
 */
export type SequenceSketch = { terms: TermSketch[]; before: number; after: number };
export type TermSketch = { blanks: number } & (
  | { kind: 'match'; field: string; value: ValueSketch; beneath?: true }
  | { kind: 'time'; bounds: BoundSketch[] }
  | { kind: 'item'; field?: string; sequence: SequenceSketch }
  | { kind: 'comparison'; field: string; bounds: ast.Bound[] }
  | { kind: 'group'; group: GroupSketch }
);
export type GroupSketch = { operator: 'AND' | 'OR'; operands: (SequenceSketch | GroupSketch)[]; blanks: number };
export type ValueSketch =
  | PlainSketch
  | { form: 'list'; items: PlainSketch[]; blanks: number }
  | { form: 'regex'; source: string; quoted: boolean; escapeAll: boolean };
/** One part is a text, more have a star between them. */
export type PlainSketch = { form: 'quoted'; text: string } | { form: 'bare'; parts: string[]; escapeAll: boolean };
export interface BoundSketch {
  operator: '>' | '>=' | '<' | '<=';
  /** Nanoseconds since 1970; a multiple of 10^(9 - digits). */
  nanoseconds: bigint;
  digits: number;
  /** Minutes; undefined is `Z`. */
  offset: number | undefined;
}

export function writeQuery(sketch: SequenceSketch): { text: string; query: ast.Query } {
  const writer = new Writer();
  const query = ast.and(writer.sequence(sketch), 1);
  return { text: writer.text, query };
}

/** Whether a text can be written without quotes and read back; `parts` as in a bare sketch. */
export function canBeBare(parts: readonly string[], escapeAll: boolean, inList: boolean): boolean {
  const written = writeBare(parts, escapeAll, inList);
  return (
    written !== '' &&
    !/^[ "(~<>]| $| [A-Za-z_][A-Za-z0-9_.]*:/.test(written) &&
    !/(^|[ (),])(AND|OR|NOT)($|[ (),])/.test(written)
  );
}

/** Whether a regular expression, valid by itself, can be written without quotes and read back. */
export function canBeUnquoted(source: string): boolean {
  return source !== '' && !/^"| $| [A-Za-z_][A-Za-z0-9_.]*:|\\Q(?!.*\\E)/s.test(source);
}

class Writer {
  text = '';
  #characters = 0;

  get #position(): number {
    return this.#characters + 1;
  }

  sequence(sketch: SequenceSketch): ast.Condition[] {
    this.#write(' '.repeat(sketch.before));
    const conditions = sketch.terms.map((term, index) => {
      if (index > 0) this.#write(' '.repeat(term.blanks));
      return this.#term(term);
    });
    this.#write(' '.repeat(sketch.after));
    return conditions;
  }

  #term(term: TermSketch): ast.Condition {
    const position = this.#position;
    switch (term.kind) {
      case 'match':
        this.#write(`${term.field}:`);
        return ast.match(
          plainFieldName(term.field),
          this.#value(term.value),
          position,
          term.beneath ? { beneath: true } : {},
        );
      case 'comparison': {
        const bounds = term.bounds.map(
          ({ operator, type, text }) => operator + (type === 'number' ? text : writeQuoted(text)),
        );
        this.#write(`${term.field}:${bounds.length === 1 ? bounds.join('') : `(${bounds.join(' AND ')})`}`);
        return ast.comparison(term.field, term.bounds, position) as unknown as ast.Condition;
      }
      case 'time':
        this.#write(`occurredAt:${writeRange(term.bounds)}`);
        return ast.timeRange('occurredAt', boundsOf(term.bounds), position);
      case 'item': {
        const { field = 'related' } = term;
        this.#write(`${field}:elemMatch(`);
        const start = this.#position;
        const terms = this.sequence(term.sequence) as ast.ItemTerm[];
        this.#write(')');
        return ast.itemMatch(field, ast.itemQuery(terms, start), position);
      }
      case 'group':
        this.#write('compoundLogicalQuery:');
        return this.#group(term.group);
    }
  }

  #group({ operator, operands, blanks }: GroupSketch): ast.Condition {
    const position = this.#position;
    this.#write('(');
    const conditions = operands.map((operand, index) => {
      if (index > 0) this.#write(`${' '.repeat(blanks)}${operator}${' '.repeat(blanks)}`);
      if ('operator' in operand) return this.#group(operand);
      const start = this.#position;
      this.#write('(');
      const terms = this.sequence(operand);
      this.#write(')');
      return ast.and(terms, start);
    });
    this.#write(')');
    return operator === 'OR' && operands.length > 1 ? ast.or(conditions, position) : ast.and(conditions, position);
  }

  #value(value: ValueSketch): ast.Matcher {
    switch (value.form) {
      case 'list': {
        const blanks = ' '.repeat(value.blanks);
        this.#write(`(${value.items.map((item) => writePlain(item, true)).join(`${blanks},${blanks}`)})`);
        return ast.list(value.items.map(plainMatcher));
      }
      case 'regex':
        this.#write(`~${value.quoted ? writeQuotedRegex(value.source, value.escapeAll) : value.source}`);
        return ast.regex(value.source);
      default:
        this.#write(writePlain(value, false));
        return plainMatcher(value);
    }
  }

  #write(text: string): void {
    this.text += text;
    this.#characters += [...text].length;
  }
}

function plainMatcher(plain: PlainSketch): ast.Text | ast.Glob {
  if (plain.form === 'quoted') return ast.text(plain.text, true);
  return plain.parts.length === 1 ? ast.text(plain.parts.join(''), false) : ast.glob(plain.parts);
}

function writePlain(plain: PlainSketch, inList: boolean): string {
  return plain.form === 'quoted' ? writeQuoted(plain.text) : writeBare(plain.parts, plain.escapeAll, inList);
}

function writeQuoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
}

/** In a quoted regular expression a backslash may stand for itself where no `"` or `\` follows. */
function writeQuotedRegex(source: string, escapeAll: boolean): string {
  if (escapeAll) return writeQuoted(source);
  return `"${source.replaceAll(/"|\\(?=["\\]|$)/g, '\\$&')}"`;
}

/** Escapes all that can be, or only what must be: stars, what is not balanced, commas of a list. */
function writeBare(parts: readonly string[], escapeAll: boolean, inList: boolean): string {
  const balanced = isBalanced(parts.join(''));
  const escaped = escapeAll || !balanced ? /[*(),\\]/g : inList ? /[*,]|\\(?=[*(),\\]|$)/g : /\*|\\(?=[*(),\\]|$)/g;
  return parts.map((part) => part.replaceAll(escaped, '\\$&')).join('*');
}

function isBalanced(text: string): boolean {
  let depth = 0;
  for (const character of text) {
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (depth < 0) return false;
  }
  return depth === 0;
}

function writeRange(bounds: readonly BoundSketch[]): string {
  const written = bounds.map(({ operator, ...time }) => `${operator}"${writeTime(time)}"`);
  return written.length === 1 ? written.join('') : `(${written.join(' AND ')})`;
}

function writeTime({ nanoseconds, digits, offset }: Omit<BoundSketch, 'operator'>): string {
  const local = nanoseconds + BigInt(offset ?? 0) * 60_000_000_000n;
  const second = local / 1_000_000_000n;
  const fraction = (local % 1_000_000_000n).toString().padStart(9, '0').slice(0, digits);
  const day = new Date(Number(second) * 1000).toISOString().slice(0, 19);
  return `${day}${digits === 0 ? '' : `.${fraction}`}${offset === undefined ? 'Z' : writeOffset(offset)}`;
}

function writeOffset(offset: number): string {
  const minutes = Math.abs(offset);
  const two = (number: number) => String(number).padStart(2, '0');
  return `${offset < 0 ? '-' : '+'}${two(Math.trunc(minutes / 60))}:${two(minutes % 60)}`;
}

function boundsOf(bounds: readonly BoundSketch[]): { from: number | undefined; to: number | undefined } {
  const froms = bounds.filter(({ operator }) => operator.startsWith('>')).map(firstInside);
  const tos = bounds.filter(({ operator }) => operator.startsWith('<')).map(firstInside);
  return {
    from: froms.length === 0 ? undefined : Math.max(...froms),
    to: tos.length === 0 ? undefined : Math.min(...tos),
  };
}

/** The first whole millisecond inside a from-bound, or after a to-bound. */
function firstInside({ operator, nanoseconds }: BoundSketch): number {
  const floor = nanoseconds / 1_000_000n;
  const exact = nanoseconds % 1_000_000n === 0n;
  const isIncluded = operator === '>=' || operator === '<';
  return Number(isIncluded && exact ? floor : floor + 1n);
}
