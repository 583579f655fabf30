import { uuidOf } from '../core/text-hash.ts';
import type { DemoChange, Employee, FiledChange } from './shop-file.ts';

type People = Readonly<Record<string, Employee>>;

// Milliseconds.
const beforeFirstChange = 95_000;
const beforeExport = 20_000;
const maxGap = 3_000;

/** The changes of a day (counted from 0) with the sign-ins and exports of its people, in order of time. */
export function withEvents(day: readonly FiledChange[], index: number, people: People): readonly FiledChange[] {
  const taken = new Set(day.map(([millisecond]) => millisecond));
  /** No two changes have the same time. */
  const freeBefore = (millisecond: number): number => {
    let free = millisecond;
    while (taken.has(free)) free -= 1;
    taken.add(free);
    return free;
  };
  const events = Object.entries(people).flatMap(([name, { id, signsIn, exports }]): FiledChange[] => {
    const [first] = day.find(([, actor]) => actor === name) ?? [];
    if (first === undefined || !signsIn) return [];
    const signIn = freeBefore(first - beforeFirstChange);
    const ofPerson: FiledChange[] = [[signIn, name, 'insert', 'sign-in', `${id}-${index}`, {}]];
    if (exports === undefined || index % 7 !== 4) return ofPerson;
    const rows = 1_000 + index * 37;
    const content = { what: exports, rows };
    return [...ofPerson, [freeBefore(first - beforeExport), name, 'insert', 'export', `${id}-${index}`, content]];
  });
  return [...day, ...events].sort(([a], [b]) => a - b);
}

/** The name of that day, and the id. */
export function whoOf(
  name: string,
  index: number,
  employee: Employee | undefined,
): Pick<DemoChange, 'actor' | 'actorId'> {
  if (employee === undefined) return { actor: name };
  const { id: actorId, later } = employee;
  return { actor: later !== undefined && index >= later.day ? later.name : name, actorId };
}

/** From where events and the work of support come, and for whom support works. */
export function circumstancesOf(
  { entity, entityId, document }: { entity: string; entityId: string; document: object },
  employee: Employee | undefined,
  nameOf: (customer: string, document?: object) => string | undefined,
): Pick<DemoChange, 'onBehalfOf' | 'context'> {
  if (employee?.address === undefined) return {};
  const context = { context: { ip: employee.address } };
  if (entity === 'sign-in' || entity === 'export') return context;
  const customer = entity === 'customer' ? entityId : customerOf(document);
  if (!employee.supports || customer === undefined) return {};
  const name = entity === 'customer' ? nameOf(customer, document) : nameOf(customer);
  return { ...context, onBehalfOf: { ...(name !== undefined && { name }), id: customer } };
}

/** The customer of an order. */
function customerOf(document: { customer?: unknown }): string | undefined {
  const { customer } = document;
  if (typeof customer !== 'object' || customer === null || !('id' in customer)) return undefined;
  return String(customer.id);
}

/**
 * The correlation of each change of a day: changes of one actor that follow each other within seconds are of one
 * request. Undefined for a change that is alone.
 */
export function correlationsOf(day: readonly FiledChange[], index: number): (string | undefined)[] {
  const starts: number[] = [];
  for (const [place, [millisecond, actor]] of day.entries()) {
    const [earlier = 0, other] = day[place - 1] ?? [];
    const isSame = other === actor && millisecond - earlier <= maxGap;
    starts.push(isSame ? (starts[place - 1] ?? place) : place);
  }
  return starts.map((start, place) => {
    const isAlone = start === place && starts[place + 1] !== start;
    return isAlone ? undefined : correlationOf(`demo ${index} ${day[start]?.[0]}`);
  });
}

function correlationOf(text: string): string {
  return uuidOf(text).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
