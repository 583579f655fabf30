import { elementsOf, membersOf, objectText, stringOf } from '../../core/json/members.ts';
import { maximumImportDepth, parseJson, parseObject } from '../../core/json/parse.ts';
import { type JsonNode, JsonSyntaxError } from '../../core/json/tape.ts';
import { compactText, sourceText } from '../../core/json/text.ts';
import type { ChangeType } from '../change.ts';
import { applyRules, applyRulesAt, compileRules, rowRules, type Sides } from './apply-rules.ts';
import type { TableMapping } from './mapping.ts';
import { type ChangedValue, documentText, type Row, type RowChange } from './row-change.ts';
import { readWho } from './who.ts';

/**
 * A row's change as JSON text, masked and without ignored values, to be mapped again. Loses whether masked values
 * differ.
 */
export function rejectedRowText(table: TableMapping, row: RowChange): string {
  const { ignored, rest, masks } = rowRules(table);
  const node = (side: Row | undefined) => side && parseJson(documentText(side, table, ignored));
  const sides = () => applyRules(rest, { before: node(row.before), after: node(row.after) });
  const { before, after } = withoutUnreadable(sides);
  const { after: written = '{}' } = withoutUnreadable(() => applyRules(rest, { after: node(row.written) }));
  const context = row.context && applyRules(masks, { after: parseJson(row.context) }).after;
  return objectText([
    ['table', JSON.stringify(row.table)],
    ['type', JSON.stringify(row.type)],
    ['at', String(row.at)],
    ['identity', JSON.stringify(Buffer.from(row.identity).toString('hex'))],
    ['primaryKey', row.primaryKey && JSON.stringify(row.primaryKey)],
    ...factMembers({ ...row, context: context || undefined }),
    ['before', before],
    ['after', after],
    ['written', row.written && written],
    ['values', row.values && valuesText(table, row.values)],
  ]);
}

/** What the transaction of a row says of its change. */
type RowFacts = Pick<RowChange, 'who' | 'correlationId' | 'derivedCorrelationId'> & {
  readonly context?: string | JsonNode | undefined;
};

function factMembers({
  who,
  correlationId,
  derivedCorrelationId,
  context,
}: RowFacts): [string, string | JsonNode | undefined][] {
  return [
    ['actor', who?.actor && JSON.stringify(who.actor)],
    ['actorId', who?.actorId && JSON.stringify(who.actorId)],
    ['onBehalfOf', who?.onBehalfOf && JSON.stringify(who.onBehalfOf)],
    ['correlationId', correlationId && JSON.stringify(correlationId)],
    ['derivedCorrelationId', derivedCorrelationId && JSON.stringify(derivedCorrelationId)],
    ['context', context],
  ];
}

/** The text of `rejectedRowText`, with facts that became known at the commit. `context`: JSON text, masked. */
export function withRowFacts(text: string, facts: RowFacts): string {
  const members = new Map<string, string | JsonNode>(membersOf(parseJson(text, maximumImportDepth + 1)));
  for (const [name, value] of factMembers(facts)) if (value !== undefined) members.set(name, value);
  return objectText(members);
}

/** Each value as `[keys, after]`; a removed value as `[keys]`. */
function valuesText({ rules }: TableMapping, values: readonly ChangedValue[]): string {
  const texts = values.flatMap(({ keys, after }) => {
    const shown = applyRulesAt(compileRules(rules), keys, parseJson(after ?? 'null'));
    if (shown === undefined) return [];
    return [`[${JSON.stringify(keys)}${after === undefined ? '' : `,${shown}`}]`];
  });
  return `[${texts.join(',')}]`;
}

function valuesOf(list: JsonNode | undefined): ChangedValue[] | undefined {
  if (list === undefined) return undefined;
  return elementsOf(list).map((value) => {
    const [keys, after] = elementsOf(value);
    return { keys: keys === undefined ? [] : JSON.parse(sourceText(keys)), after: after && compactText(after) };
  });
}

/** Both sides of the row, or neither if a value cannot be parsed and so cannot be masked. */
function withoutUnreadable(sides: () => Sides): Sides {
  try {
    return sides();
  } catch (error) {
    if (error instanceof JsonSyntaxError) return {};
    throw error;
  }
}

const changeTypes: readonly ChangeType[] = ['create', 'update', 'delete'];

/** Parses the output of `rejectedRowText`; undefined for any other text. */
export function readRejectedRow(text: string): RowChange | undefined {
  const object = parseObject(text);
  if (object === undefined) return undefined;
  const members = membersOf(object);
  const table = stringOf(members.get('table'));
  const type = changeTypes.find((name) => name === stringOf(members.get('type')));
  const at = members.get('at');
  const identity = stringOf(members.get('identity'));
  if (table === undefined || type === undefined || at === undefined || identity === undefined) return undefined;
  const row = (name: string): Row | undefined => {
    const side = members.get(name);
    return side && new Map([...membersOf(side)].map(([column, value]) => [column, compactText(value)]));
  };
  const who = readWho(object);
  const key = members.get('primaryKey');
  const context = members.get('context');
  return {
    table,
    type,
    at: Number(sourceText(at)),
    identity: Buffer.from(identity, 'hex'),
    before: row('before'),
    after: row('after'),
    written: row('written'),
    values: valuesOf(members.get('values')),
    primaryKey: key && JSON.parse(sourceText(key)),
    who: who === 'invalid' ? undefined : who,
    correlationId: stringOf(members.get('correlationId')),
    derivedCorrelationId: stringOf(members.get('derivedCorrelationId')),
    context: context && compactText(context),
  };
}
