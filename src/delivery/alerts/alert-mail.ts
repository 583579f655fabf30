import { entriesOf, kindOf, memberOf, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import type { DeliveredChange } from '../changes.ts';
import type { RaisedAlert } from './alert-state.ts';

export interface AlertToTell {
  readonly tenant: string;
  /** Of the subscription. */
  readonly name: string;
  readonly q: string;
  readonly alert: RaisedAlert;
  /** The first changes of the alert, as they go out: hidden values are masked. */
  readonly changes: readonly DeliveredChange[];
  readonly withValues: boolean;
  /** The public address of the service; undefined where nobody has told it. */
  readonly baseUrl: string | undefined;
}

/** An alert's e-mail tells of so many changes. */
export const maxToldChanges = 5;

// Code points, and paths of a change.
const maxName = 100;
const maxValue = 200;
const maxPaths = 10;

/** Plain text. Nothing of the history can begin a line of its own, or turn the direction of one. */
export function alertMail(told: AlertToTell): { subject: string; text: string } {
  const { tenant, name, q, alert, changes, withValues, baseUrl } = told;
  const counted = `${alert.count} ${alert.count === 1 ? 'change' : 'changes'}`;
  const shown = shownText(name, maxName);
  const lines = [
    `${counted} of the tenant ${tenant} matched the alert "${shown}",`,
    alert.count === 1 ? `at ${timeText(alert.from)}.` : `from ${timeText(alert.from)} to ${timeText(alert.to)}.`,
    '',
    ...(changes.length < alert.count ? [`The first ${changes.length}:`, ''] : []),
    ...changes.flatMap((change) => linesOf(change, withValues)),
    '',
    ...linkLines({ q, alert, baseUrl }),
    '',
    'This alert sends one e-mail in 10 minutes at most.',
  ];
  return { subject: `Annals: ${counted}, alert "${shown}"`, text: lines.join('\n') };
}

/** The page of the console that shows a query in a range of time. */
export function consoleLink(baseUrl: string, q: string): string {
  return `${baseUrl}/console/history?${new URLSearchParams({ q })}`;
}

function linkLines({ q, alert, baseUrl }: Pick<AlertToTell, 'q' | 'alert' | 'baseUrl'>): string[] {
  const range = `occurredAt:(>="${timeText(alert.from)}" AND <="${timeText(alert.to)}")`;
  const asked = q.trim() === '' ? range : `${q.trim()} ${range}`;
  if (baseUrl === undefined)
    return ['In the console, on the page History, ask for:', `  ${shownText(asked, Number.POSITIVE_INFINITY)}`];
  return ['In the console:', consoleLink(baseUrl, asked)];
}

function linesOf(change: DeliveredChange, withValues: boolean): string[] {
  const entry = parseJson(change.text);
  const actor = shownText(stringOf(memberOf(entry, 'actor')) ?? '', maxName);
  const name = stringOf(memberOf(entry, 'name'));
  const document = `${shownText(change.entity, maxName)} ${shownText(change.entityId, maxName)}`;
  const named = name === undefined ? document : `${document} "${shownText(name, maxName)}"`;
  const paths = memberOf(entry, 'paths');
  const changed = paths === undefined || kindOf(paths) !== 'object' ? [] : entriesOf(paths);
  const head = `- ${timeText(change.at)} ${change.type} ${named}, by ${actor}`;
  const more = changed.length > maxPaths ? [`    and ${changed.length - maxPaths} more`] : [];
  return [head, ...changed.slice(0, maxPaths).map(([path, values]) => pathLine(path, withValues && values)), ...more];
}

function pathLine(path: string, values: JsonNode | false): string {
  const shown = `    ${shownText(path, maxName)}`;
  return values === false ? shown : `${shown}: ${valueText(values, 'before')} → ${valueText(values, 'after')}`;
}

function valueText(values: JsonNode, side: 'before' | 'after'): string {
  const value = kindOf(values) === 'object' ? memberOf(values, side) : undefined;
  return value === undefined ? 'nothing' : shownText(compactText(value), maxValue);
}

/** On one line, with no character that moves or hides others, and cut to so many code points. */
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
