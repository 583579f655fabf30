import { compareLists, type ListItem, type ListRow } from '../../core/json/list-changes.ts';
import { elementsOf, entriesOf, kindOf, memberOf, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import type { DeliveredChange } from '../changes.ts';
import type { RaisedAlert } from './alert-state.ts';

export interface AlertContent {
  readonly tenant: string;
  /** Of the subscription. */
  readonly name: string;
  readonly q: string;
  readonly alert: RaisedAlert;
  /** The first changes of the alert, with hidden values masked. */
  readonly changes: readonly DeliveredChange[];
  readonly withValues: boolean;
  /** The public base URL of the service, if configured. */
  readonly baseUrl: string | undefined;
}

/** Changes listed in an alert's e-mail. */
export const maxListedChanges = 5;

// Code points; `maxPaths`: paths of a change.
const maxName = 100;
const maxSubjectName = 60;
const maxValue = 200;
const maxRow = 400;
const maxPaths = 10;
/** Elements of a list of objects: that are compared, and that are listed. */
const maxElements = 500;
const maxRows = 10;

/** Plain text. No content of the history can start a line or change the text direction. */
export function alertMail(content: AlertContent): { subject: string; text: string } {
  const { tenant, name, q, alert, changes, withValues, baseUrl } = content;
  const total = `${alert.count} ${alert.count === 1 ? 'change' : 'changes'}`;
  const shown = shownText(name, maxName);
  const lines = [
    `${total} of the tenant ${tenant} matched the alert "${shown}",`,
    alert.count === 1 ? `at ${timeText(alert.from)}.` : `from ${timeText(alert.from)} to ${timeText(alert.to)}.`,
    '',
    ...(changes.length < alert.count ? [`The first ${changes.length}:`, ''] : []),
    ...changes.flatMap((change) => linesOf(change, withValues)),
    '',
    ...linkLines({ q, alert, baseUrl }),
    '',
    'This alert sends one e-mail in 10 minutes at most.',
  ];
  return { subject: `Annals: ${total}${ofDocuments(changes, alert.count)}, alert "${shown}"`, text: lines.join('\n') };
}

/** The first document, by its name where it has one. */
function ofDocuments(changes: readonly DeliveredChange[], count: number): string {
  const [first] = changes;
  if (first === undefined) return '';
  const isOne = changes.length === count && changes.every(({ document }) => document === first.document);
  const name = stringOf(memberOf(parseJson(first.text), 'name'));
  const which = name === undefined ? shownText(first.entityId, maxSubjectName) : `"${shownText(name, maxSubjectName)}"`;
  return ` of ${shownText(first.entity, maxSubjectName)} ${which}${isOne ? '' : ' and others'}`;
}

/** The console's history page with a query. */
export function consoleLink(baseUrl: string, q: string): string {
  return `${baseUrl}/console/history?${new URLSearchParams({ q })}`;
}

function linkLines({ q, alert, baseUrl }: Pick<AlertContent, 'q' | 'alert' | 'baseUrl'>): string[] {
  const range = `occurredAt:(>="${timeText(alert.from)}" AND <="${timeText(alert.to)}")`;
  const query = q.trim() === '' ? range : `${q.trim()} ${range}`;
  if (baseUrl === undefined)
    return ['In the console, on the page History, ask for:', `  ${shownText(query, Number.POSITIVE_INFINITY)}`];
  return ['In the console:', consoleLink(baseUrl, query)];
}

function linesOf(change: DeliveredChange, withValues: boolean): string[] {
  const entry = parseJson(change.text);
  const name = stringOf(memberOf(entry, 'name'));
  const id = shownText(change.entityId, maxName);
  const which = name === undefined ? id : `"${shownText(name, maxName)}" (${id})`;
  const named = `${shownText(change.entity, maxName)} ${which}`;
  const paths = memberOf(entry, 'paths');
  const entries = paths === undefined || kindOf(paths) !== 'object' ? [] : entriesOf(paths);
  const head = `- ${timeText(change.at)} ${change.type} ${named}${whoText(entry)}`;
  const more = entries.length > maxPaths ? [`    and ${entries.length - maxPaths} more`] : [];
  return [
    head,
    ...entries.slice(0, maxPaths).flatMap(([path, values]) => pathLines(path, withValues && values)),
    ...more,
  ];
}

/** Who made a change, as far as the subscription shows it. */
function whoText(entry: JsonNode): string {
  const actor = stringOf(memberOf(entry, 'actor'));
  if (actor === undefined) return '';
  const behalf = memberOf(entry, 'onBehalfOf');
  const by = personText(actor, stringOf(memberOf(entry, 'actorId')));
  if (behalf === undefined) return `, by ${by}`;
  return `, by ${by} on behalf of ${personText(stringOf(memberOf(behalf, 'name')), stringOf(memberOf(behalf, 'id')))}`;
}

function personText(name: string | undefined, id: string | undefined): string {
  if (name === undefined) return shownText(id ?? '', maxName);
  return id === undefined ? shownText(name, maxName) : `${shownText(name, maxName)} (${shownText(id, maxName)})`;
}

function pathLines(path: string, values: JsonNode | false): string[] {
  const shown = `    ${shownText(path, maxName)}`;
  if (values === false) return [shown];
  const before = sideOf(values, 'before');
  const after = sideOf(values, 'after');
  const changed = rowsOf(before, after)?.filter(({ kind }) => kind !== 'same') ?? [];
  if (changed.length === 0) return [`${shown}: ${valueText(before)} → ${valueText(after)}`];
  const more = changed.length - maxRows;
  return [
    `${shown}:`,
    ...changed.slice(0, maxRows).map((row) => `      ${rowText(row)}`),
    ...(more > 0 ? [`      and ${more} more`] : []),
  ];
}

/** What became of the elements of a list of objects; undefined for other values. */
function rowsOf(before: JsonNode | undefined, after: JsonNode | undefined): ListRow<JsonNode>[] | undefined {
  const [was, is] = [before, after].map(objectsOf);
  if (was === undefined || is === undefined || was.length + is.length === 0) return undefined;
  return compareLists(was, is, compactText);
}

/** The objects of a list; none for a value that is missing. */
function objectsOf(value: JsonNode | undefined): ListItem<JsonNode>[] | undefined {
  if (value === undefined) return [];
  if (kindOf(value) !== 'array') return undefined;
  const items = elementsOf(value);
  if (items.length > maxElements || !items.every((item) => kindOf(item) === 'object')) return undefined;
  return items.map((item) => new Map(entriesOf(item)));
}

/** `Changed 2: product cup, quantity 1 → 2`: of an element that stays, its first member and those that differ. */
function rowText({ kind, isMoved, from, to, before, after, changed }: ListRow<JsonNode>): string {
  const place = isMoved ? `${(from ?? 0) + 1} → ${(to ?? 0) + 1}` : String((to ?? from ?? 0) + 1);
  const item = after ?? before;
  const names = kind === 'added' || kind === 'removed' ? item?.keys() : namesOf(item, changed);
  const members = [...(names ?? [])].map((name) => {
    const isChanged = kind === 'changed' && changed.has(name);
    const value = item?.get(name);
    const shown = isChanged ? `${valueText(before?.get(name))} → ${valueText(after?.get(name))}` : valueText(value);
    return `${shownText(name, maxName)} ${shown}`;
  });
  const word = kind === 'changed' && isMoved ? 'Changed, moved' : words[kind];
  return `${word} ${place}: ${shownText(members.join(', '), maxRow)}`;
}

const words = { added: 'Added', removed: 'Removed', changed: 'Changed', moved: 'Moved', same: 'Same' } as const;

function namesOf(item: ListItem<JsonNode> | undefined, changed: ReadonlySet<string>): Set<string> {
  const [first] = item?.keys() ?? [];
  return new Set([...(first === undefined ? [] : [first]), ...changed]);
}

function sideOf(values: JsonNode, side: 'before' | 'after'): JsonNode | undefined {
  return kindOf(values) === 'object' ? memberOf(values, side) : undefined;
}

function valueText(value: JsonNode | undefined): string {
  return value === undefined ? 'nothing' : shownText(compactText(value), maxValue);
}

/** One line without control and bidirectional characters, truncated to `maxLength` code points. */
function shownText(text: string, maxLength: number): string {
  const plain = text
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, ' ')
    .trim();
  const points = [...plain.slice(0, Math.min(plain.length, 2 * maxLength))];
  return points.length > maxLength ? `${points.slice(0, maxLength).join('')}…` : plain;
}

function timeText(at: number): string {
  return new Date(at).toISOString();
}
