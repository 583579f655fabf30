import { RE2JS } from 're2js';
import type { Condition, ItemQuery, Matcher, Query } from '../../../src/query/ast.ts';
import { type Change, changesOf, sideAccepts } from './changed-paths.ts';

export interface HistoryEntry {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly type: string;
  readonly entity: string;
  readonly entityId: string;
  readonly actor: string;
  readonly actorId?: string;
  readonly onBehalfOf?: { readonly name?: string; readonly id?: string };
  readonly correlationId?: string;
  /** JSON text. */
  readonly context?: string;
  readonly related: readonly { readonly entity: string; readonly entityId: string }[];
  /** JSON text. */
  readonly paths: string;
}

/**
 * Whether a query of the change history finds an entry: a plain evaluator, independent of the service, whose answers
 * from storage are compared with it.
 */
export function matches(query: Query, entry: HistoryEntry, nowMs: number): boolean {
  return holds(query, entry) && (replacesWindow(query) || entry.at >= nowMs - 30 * 24 * 60 * 60 * 1000);
}

/** The same without a window. */
export function holds(condition: Condition, entry: HistoryEntry): boolean {
  switch (condition.kind) {
    case 'and':
      return condition.operands.every((operand) => holds(operand, entry));
    case 'or':
      return condition.operands.some((operand) => holds(operand, entry));
    case 'time':
      return (condition.from ?? -Infinity) <= entry.at && entry.at < (condition.to ?? Infinity);
    case 'item':
      if (condition.field === 'change') {
        return changesOf(entry.paths).some((change) => changeHolds(condition.operand, change));
      }
      return entry.related.some((item) =>
        condition.operand.operands.every(
          (term) =>
            term.kind === 'match' && accepts(term.matcher, term.field === 'entity' ? item.entity : item.entityId),
        ),
      );
    case 'match':
      if (condition.field === 'path') {
        return changesOf(entry.paths).some(({ path }) => acceptsPath(condition.matcher, path));
      }
      return acceptsSome(condition.field, condition.matcher, valuesOf(condition.field, entry));
  }
}

const optional = /^(?:actorId|onBehalfOf|onBehalfOfId|correlationId|context\..*)$/s;

function acceptsSome(field: string, matcher: Matcher, values: readonly string[]): boolean {
  if (matcher.kind === 'list') return matcher.items.some((item) => acceptsSome(field, item, values));
  if (optional.test(field) && matcher.kind === 'text' && !matcher.quoted) {
    if (matcher.text === 'exists') return values.length > 0;
    if (matcher.text === 'missing') return values.length === 0;
  }
  return values.some((value) => accepts(matcher, value));
}

/** A text also accepts what is beneath it; a pattern accepts the whole path alone. */
function acceptsPath(matcher: Matcher, path: string): boolean {
  if (matcher.kind === 'list') return matcher.items.some((item) => acceptsPath(item, path));
  return accepts(matcher, path) || (matcher.kind === 'text' && path.startsWith(`${matcher.text}.`));
}

function changeHolds({ operands }: ItemQuery, change: Change): boolean {
  return operands.every((term) => {
    if (term.kind === 'match' && term.field === 'path') return accepts(term.matcher, change.path);
    return sideAccepts(term, change, accepts);
  });
}

function valuesOf(field: string, entry: HistoryEntry): string[] {
  switch (field) {
    case 'related.entity':
      return entry.related.map((item) => item.entity);
    case 'related.entityId':
      return entry.related.map((item) => item.entityId);
    case 'entity':
      return [entry.entity];
    case 'entityId':
      return [entry.entityId];
    case 'type':
      return [entry.type];
    case 'actor':
      return [entry.actor];
    case 'actorId':
      return defined(entry.actorId);
    case 'onBehalfOf':
      return defined(entry.onBehalfOf?.name);
    case 'onBehalfOfId':
      return defined(entry.onBehalfOf?.id);
    case 'correlationId':
      return defined(entry.correlationId);
    default:
      if (!field.startsWith('context.')) throw new Error(`no such field: ${field}`);
      return memberOf(entry.context ?? '{}', field.slice('context.'.length));
  }
}

function defined(value: string | undefined): string[] {
  return value === undefined ? [] : [value];
}

/** A number as it is written. */
function memberOf(context: string, name: string): string[] {
  const written = (_key: string, member: unknown, { source }: { source?: string }) =>
    typeof member === 'number' || typeof member === 'boolean' ? source : member;
  const members: Record<string, unknown> = JSON.parse(context, written as (key: string, value: unknown) => unknown);
  const value = Object.hasOwn(members, name) ? members[name] : undefined;
  return typeof value === 'string' ? [value] : [];
}

function accepts(matcher: Matcher, value: string): boolean {
  switch (matcher.kind) {
    case 'text':
      return matcher.text === value;
    case 'list':
      return matcher.items.some((item) => accepts(item, value));
    case 'regex':
      return compiled(matcher.source).test(value);
    case 'glob':
      return acceptsGlob(matcher.parts, value);
  }
}

/** All the ways that stars may stretch: after each part, every place where what comes next may begin. */
function acceptsGlob(parts: readonly string[], value: string): boolean {
  let places = value.startsWith(parts[0] ?? '') ? [(parts[0] ?? '').length] : [];
  for (const part of parts.slice(1)) {
    const earliest = Math.min(...places, Infinity);
    const next: number[] = [];
    for (let start = earliest; start <= value.length; start += 1) {
      if (value.startsWith(part, start)) next.push(start + part.length);
    }
    places = next;
  }
  return places.includes(value.length);
}

const expressions = new Map<string, RE2JS>();

function compiled(source: string): RE2JS {
  const known = expressions.get(source) ?? RE2JS.compile(source);
  expressions.set(source, known);
  return known;
}

/** A from-bound counts where no group above it is an OR of several operands (spec A, rules 2 to 4). */
function replacesWindow(query: Query): boolean {
  const pending: Condition[] = [query];
  for (let condition = pending.pop(); condition !== undefined; condition = pending.pop()) {
    if (condition.kind === 'time' && condition.from !== undefined) return true;
    if (condition.kind === 'and') pending.push(...condition.operands);
    if (condition.kind === 'or' && condition.operands.length === 1) pending.push(...condition.operands);
  }
  return false;
}
