import {
  type And,
  type AnyCondition,
  and,
  type Condition,
  type DocumentQuery,
  type ItemMatch,
  type ItemTerm,
  itemMatch,
  itemQuery,
  match,
  or,
  type Query,
} from './ast.ts';
import { Cursor } from './cursor.ts';
import type { Dialect, FieldNeed, Fields, ItemDialect, ItemRule } from './dialect.ts';
import { parseDocumentTerm, parseRange, parseValue } from './parse-value.ts';
import { foundAt, QueryError } from './query-error.ts';
import { regexWorkLimit } from './regex.ts';
import type { ValueContext } from './spans.ts';
import { plainFieldName } from './written.ts';

/** Every field there may be in a JSON document, its path with dots between the keys (contract 9). */
const documentDialect: Dialect = {
  field: (name) => (name === 'compoundLogicalQuery' ? { kind: 'group' } : { kind: 'value', expressions: true }),
  fields: 'a field of the document',
  example: 'price:12',
  needs: [],
};

/**
 * The limits of the query language (contract 4). Characters are code points. A level is a group. `elemMatch` and
 * `compoundLogicalQuery` count as terms.
 */
export const queryLimits = { characters: 4096, levels: 16, terms: 256 } as const;

/**
 * Parses the text of a query by the grammar of contract 4. Throws QueryError and nothing else. It takes time linear in
 * the text, and at most some 20 ms more to check regular expressions.
 *
 * @example
 * parseQuery('entity:order type:update', changelogDialect).operands.length; // 2
 */
export function parseQuery(text: string, dialect: Dialect): Query {
  // Only a dialect of documents has fields that take comparisons.
  const query = parse(text, dialect) as Query;
  checkNeeds(query, dialect.needs);
  return query;
}

/**
 * Parses a query over the fields of JSON documents (contract 9): any field, with comparisons, without times.
 *
 * @example
 * parseDocumentQuery('price:>=10 tags:red');
 */
export function parseDocumentQuery(text: string): DocumentQuery {
  return parse(text, documentDialect) as DocumentQuery;
}

function parse(text: string, dialect: Dialect): And<AnyCondition> {
  refuseLength(text);
  refuseCharacters(text);
  return new Parser(text).parse(dialect);
}

interface ParsePlace {
  /** The number of groups around this place. */
  readonly level: number;
  readonly inParentheses: boolean;
}

class Parser {
  readonly #cursor: Cursor;
  readonly #regexAllowance = { work: regexWorkLimit };
  #terms = 0;

  constructor(text: string) {
    this.#cursor = new Cursor(text);
  }

  parse(dialect: Dialect): And<AnyCondition> {
    const place: ParsePlace = { level: 0, inParentheses: false };
    return and(
      this.#sequence(place, () => this.#term(dialect, place)),
      1,
    );
  }

  /** Parses terms with blanks between them, up to the end or to the parenthesis that closes their group. */
  #sequence<Term>(place: ParsePlace, readTerm: () => Term): Term[] {
    const cursor = this.#cursor;
    const terms: Term[] = [];
    cursor.skipBlanks();
    while (!this.#ends(place)) {
      terms.push(readTerm());
      if (cursor.skipBlanks() === 0 && !this.#ends(place)) {
        throw cursor.error(place.inParentheses ? 'a blank or a ) after the term' : 'a blank or the end after the term');
      }
    }
    return terms;
  }

  #ends({ inParentheses }: ParsePlace): boolean {
    return this.#cursor.atEnd || (inParentheses && this.#cursor.next === ')');
  }

  #term(dialect: Dialect, place: ParsePlace): AnyCondition {
    const { field, rule, position } = this.#field(dialect);
    switch (rule.kind) {
      case 'time':
        return parseRange(this.#cursor, field, position);
      case 'item':
        return this.#item(field, rule.item, position);
      case 'group':
        return this.#group(dialect, place.level + 1);
      default:
        return this.#value(field, rule, place, position);
    }
  }

  #value(field: string, rule: ItemRule, place: ParsePlace, position: number): ItemTerm {
    const context = this.#valueContext(place);
    if (rule.kind === 'value') {
      return parseDocumentTerm(this.#cursor, field, rule, context, this.#regexAllowance, position);
    }
    const beneath = rule.kind === 'text' ? rule : {};
    return match(field, parseValue(this.#cursor, field, rule, context, this.#regexAllowance), position, beneath);
  }

  #field<Rule>(dialect: Fields<Rule>) {
    const cursor = this.#cursor;
    const { position } = cursor;
    const field = cursor.fieldAt(cursor.offset);
    if (field === undefined) {
      const hint = hintAt(cursor.text, cursor.offset);
      throw cursor.error(`a field and a colon, such as ${dialect.example}${hint === undefined ? '' : ` (${hint})`}`);
    }
    const name = plainFieldName(field);
    const rule = dialect.field(name);
    if (rule === undefined) {
      const found = foundAt(cursor.text, cursor.offset, cursor.offset + field.length);
      const item = dialect.itemOf?.(field);
      const hint = item === undefined ? '' : ` (write ${item}:elemMatch(${field}:…))`;
      throw new QueryError(position, `${dialect.fields}, ${found}${hint}`, `Unsupported query field: ${field}`);
    }
    this.#terms += 1;
    if (this.#terms > queryLimits.terms) throw cursor.error(`no more than ${queryLimits.terms} terms`);
    cursor.offset += field.length + 1;
    return { field: name, rule, position };
  }

  #item(field: string, dialect: ItemDialect, position: number): ItemMatch {
    const cursor = this.#cursor;
    cursor.expect('elemMatch(', `elemMatch(…) with ${dialect.fields} as the value of ${field}`);
    const start = cursor.position;
    const place: ParsePlace = { level: 0, inParentheses: true };
    const terms = this.#sequence(place, (): ItemTerm => {
      const inner = this.#field(dialect);
      return this.#value(inner.field, inner.rule, place, inner.position);
    });
    if (terms.length === 0) throw cursor.error(`${dialect.fields} within elemMatch`);
    cursor.expect(')', 'the ) that ends elemMatch');
    return itemMatch(field, itemQuery(terms, start), position);
  }

  /** A group of one operand is an AND of that one. */
  #group(dialect: Dialect, level: number): AnyCondition {
    const cursor = this.#cursor;
    const { position } = cursor;
    if (level > queryLimits.levels) throw cursor.error(`no more than ${queryLimits.levels} levels of groups`);
    cursor.expect('(', 'a group in parentheses, such as ((type:create) OR (type:delete))');
    const operands = [this.#operand(dialect, level)];
    let operator: 'AND' | 'OR' | undefined;
    while (!cursor.take(')')) {
      operator = this.#operator(operator);
      operands.push(this.#operand(dialect, level));
    }
    return operator === 'OR' ? or(operands, position) : and(operands, position);
  }

  #operator(before: 'AND' | 'OR' | undefined): 'AND' | 'OR' {
    const cursor = this.#cursor;
    const expected =
      before === undefined ? 'AND or OR between blanks' : `${before} between blanks, as before in this group`;
    if (cursor.skipBlanks() === 0) throw cursor.error(`${expected}, or the ) that closes the group`);
    const start = cursor.offset;
    const operator = cursor.take('AND') ? 'AND' : cursor.take('OR') ? 'OR' : undefined;
    if (operator === undefined) {
      if (cursor.next === ')') throw cursor.error('no blank before the ) that closes the group');
      throw cursor.error(expected, start);
    }
    if (cursor.skipBlanks() === 0) {
      // Its own word is right: what follows it is not.
      const end = cursor.offset + 1;
      throw cursor.error(`${expected}, and an operand in parentheses after it`, start, end);
    }
    if (before !== undefined && operator !== before)
      throw cursor.error(`${expected}; another operator needs parentheses`, start);
    return operator;
  }

  #operand(dialect: Dialect, level: number): AnyCondition {
    const cursor = this.#cursor;
    if (cursor.text.startsWith('((', cursor.offset)) return this.#group(dialect, level + 1);
    const { position } = cursor;
    cursor.expect('(', 'a ( that begins an operand, as in ((type:create) OR (type:delete))');
    const place: ParsePlace = { level, inParentheses: true };
    const terms = this.#sequence(place, () => this.#term(dialect, place));
    cursor.expect(')', 'the ) that ends the operand');
    return and(terms, position);
  }

  #valueContext({ inParentheses }: ParsePlace): ValueContext {
    return { inParentheses, inList: false };
  }
}

/** What a text without a field and a colon at `offset` looks like. */
function hintAt(text: string, offset: number): string | undefined {
  operatorHere.lastIndex = offset;
  const [operator] = operatorHere.exec(text) ?? [];
  if (operator === 'NOT') return 'queries have no NOT';
  if (operator === 'OR') return 'OR stands only within compoundLogicalQuery';
  if (operator === 'AND') return 'AND stands only within compoundLogicalQuery: leave it out between terms';
  fieldBeforeBlank.lastIndex = offset;
  return fieldBeforeBlank.test(text) ? 'no blank before the colon' : undefined;
}

const operatorHere = /(?:AND|OR|NOT)(?![^ ()])/y;
const fieldBeforeBlank = /[A-Za-z_][A-Za-z0-9_.]* +:/y;

function refuseLength(text: string): void {
  const expected = `no more than ${queryLimits.characters} characters`;
  // A text of this many code units is too long in any encoding, so its code points need not be counted.
  if (text.length > 2 * queryLimits.characters) throw new QueryError(queryLimits.characters + 1, expected);
  let characters = 0;
  for (const _ of text) characters += 1;
  if (characters > queryLimits.characters) throw new QueryError(queryLimits.characters + 1, expected);
}

function refuseCharacters(text: string): void {
  const found = /\0|\p{Surrogate}/u.exec(text);
  if (found === null) return;
  const kind = found[0] === '\0' ? 'NUL' : 'half of a surrogate pair';
  throw new QueryError([...text.slice(0, found.index)].length + 1, `a character of Unicode, found ${kind}`);
}

/**
 * Throws where a field needs another one (contract 4: `entityId` needs `entity`) and that one is neither beside it nor
 * in an AND that contains it. A term in an arm of an OR serves that arm alone, even where every arm has it.
 */
function checkNeeds(query: Query, needs: readonly FieldNeed[]): void {
  for (const need of needs) check(query, need, false);
}

function check(condition: Condition, need: FieldNeed, served: boolean): void {
  if (condition.kind === 'match' && condition.field === need.field && !served) {
    throw new QueryError(
      condition.position,
      `a term ${need.needs}:… beside this ${need.field} or above it`,
      need.message,
    );
  }
  if (condition.kind !== 'and' && condition.kind !== 'or') return;
  const servedHere = served || serves(condition, need);
  for (const operand of condition.operands) check(operand, need, servedHere);
}

function serves(condition: Condition, need: FieldNeed): boolean {
  if (condition.kind === 'match') return condition.field === need.needs;
  return condition.kind === 'and' && condition.operands.some((operand) => serves(operand, need));
}
