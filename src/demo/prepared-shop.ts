import { threaded } from '../core/fairness/threads.ts';
import { type Change, type ChangeType, changeOfDocuments } from '../recording/change.ts';
import { identityOfId } from '../recording/identity.ts';
import { type DemoChange, type DescribedType, dayInMilliseconds, lastWeekday, readShop } from './shop-file.ts';
import { circumstancesOf, correlationsOf, whoOf, withEvents } from './who.ts';

const typeOfOp: Record<DemoChange['op'], ChangeType> = {
  insert: 'create',
  update: 'update',
  replace: 'update',
  delete: 'delete',
};

/** The shop's history, ready to record. Within a week, its changes have the same identities. */
function changesOfShop(history: readonly DemoChange[]): Change[] {
  const changes: Change[] = [];
  for (const [position, { op, before, after, onBehalfOf, context, ...rest }] of history.entries()) {
    const change = changeOfDocuments({
      ...rest,
      type: typeOfOp[op],
      before: before === undefined ? undefined : JSON.stringify(before),
      after: after === undefined ? undefined : JSON.stringify(after),
    });
    if (change === 'unchanged') continue;
    changes.push({
      ...change,
      ...(onBehalfOf && { onBehalfOf }),
      ...(context && { context: JSON.stringify(context) }),
      identity: identityOfId(`demo ${position}`),
    });
  }
  return changes;
}

export interface PreparedShop extends Omit<InventedShop, 'changes'> {
  readonly changes: readonly Change[];
}

/** Invents the shop of `now` (milliseconds since 1970) in a worker thread. */
export const preparedShop = threaded(
  import.meta.url,
  'preparedShop',
  (now: number): PreparedShop => {
    const { changes, ...documents } = inventShop(now);
    return { ...documents, changes: changesOfShop(changes) };
  },
  () => true,
);

/** A claim after its last change. Times are in milliseconds since 1970. */
interface ClaimState {
  readonly id: string;
  /** JSON text. */
  readonly content: string;
  readonly version: number;
  readonly createdAt: number;
  readonly modifiedAt: number;
}

interface InventedShop {
  /** Oldest first. */
  readonly changes: readonly DemoChange[];
  /** The type of the shop's warranty claims, as a client would write it, and the claims after their last changes. */
  readonly claimType: string;
  readonly claims: readonly ClaimState[];
}

/**
 * An invented shop with the changes of its last 84 to 90 days, all before `now` (milliseconds since 1970). Its weekends
 * match the calendar: within a week, a later shop only has more changes, and a week later it is shifted by a week.
 */
export function inventShop(now: number): InventedShop {
  const weekday = new Date(now).getUTCDay();
  const lastDay = Math.floor(now / dayInMilliseconds) + ((lastWeekday - weekday + 7) % 7);
  const { claimType, types, people, days } = readShop(lastDay);
  const changes: DemoChange[] = [];
  const documents = new Map<string, object>();
  const customerName = (id: string, customer = documents.get(`customer ${id}`)) => {
    return customer && describe(types.customer, customer).name;
  };
  for (const [index, day] of days.entries()) {
    const midnight = (lastDay - days.length + 1 + index) * dayInMilliseconds;
    const filed = withEvents(day, index, people);
    const groups = correlationsOf(filed, index);
    for (const [place, [millisecond, actor, op, entity, entityId, content]] of filed.entries()) {
      const key = `${entity} ${entityId}`;
      const before = documents.get(key);
      const after = content === undefined ? undefined : merge(before, content);
      if (after === undefined) documents.delete(key);
      else documents.set(key, after);
      changes.push({
        op,
        entity,
        entityId,
        at: midnight + millisecond,
        ...whoOf(actor, index, people[actor]),
        ...(groups[place] && { correlationId: groups[place] }),
        ...circumstancesOf({ entity, entityId, document: after ?? before ?? {} }, people[actor], customerName),
        ...describe(types[entity], { id: entityId, ...before, ...after }),
        ...(before === undefined ? {} : { before }),
        ...(after === undefined ? {} : { after }),
      });
    }
  }
  const past = changes.filter(({ at }) => at < now);
  return { changes: past, claimType: JSON.stringify(claimType), claims: claimsAfter(past) };
}

/** The document with the fields of an edit, merged into objects. Untouched parts are shared, not copied. */
function merge<Value>(document: unknown, edit: Value): Value {
  if (!isObject(document) || !isObject(edit)) return edit;
  const fields = Object.entries(edit).map(([field, value]) => [field, merge(document[field], value)]);
  return { ...document, ...Object.fromEntries(fields) };
}

function describe(
  { name, schemaVersion, related = {} }: DescribedType = {},
  document: object,
): Pick<DemoChange, 'name' | 'schemaVersion' | 'related'> {
  const valueAt = (path: string) =>
    String(path.split('.').reduce<unknown>((value, field) => (isObject(value) ? value[field] : undefined), document));
  return {
    ...(name === undefined ? {} : { name: name.replaceAll(/\{(.+?)\}/g, (_, path: string) => valueAt(path)) }),
    ...(schemaVersion === undefined ? {} : { schemaVersion }),
    related: Object.entries(related).map(([entity, path]) => ({ entity, entityId: valueAt(path) })),
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The warranty claims at the end of the history, so that the instances match it. */
function claimsAfter(changes: Iterable<DemoChange>): ClaimState[] {
  const claims = new Map<string, ClaimState>();
  for (const { entity, entityId: id, op, at, after } of changes) {
    if (entity !== 'WARRANTY_CLAIM') continue;
    const before = claims.get(id);
    if (op === 'delete') claims.delete(id);
    else {
      const version = (before?.version ?? 0) + 1;
      claims.set(id, {
        id,
        content: JSON.stringify(after),
        version,
        createdAt: before?.createdAt ?? at,
        modifiedAt: at,
      });
    }
  }
  return [...claims.values()];
}
