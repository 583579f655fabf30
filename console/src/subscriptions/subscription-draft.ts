import type { Subscription, SubscriptionInput } from '@annals/client';
import { type DraftHeader, draftHeaders } from '../components/forms.tsx';
import { type Duration, durationOf, isoOf, noDuration } from '../components/times.ts';
import { mask } from '../data/json-editor/document-text.ts';
import { type TargetField, type TargetType, targetOf, targets } from './target-fields.ts';

/** A subscription as it is being written. Numbers are texts, so that a half-written one stays as it is. */
export interface SubscriptionDraft {
  readonly name: string;
  readonly enabled: boolean;
  readonly q: string;
  readonly from: string;
  readonly maxAge: Duration;
  /** One path a line. */
  readonly hide: string;
  readonly actors: SentActors;
  readonly type: TargetType;
  /** The members of the target by their names. Of a secret: a new one. */
  readonly texts: Readonly<Record<string, string>>;
  readonly checks: Readonly<Record<string, boolean>>;
  readonly headers: readonly DraftHeader[];
}

/** What may be sent of who made a change, as the form has it. */
export type SentActors = 'names' | 'all' | 'none';

export const actorChoices: readonly (readonly [SentActors, string])[] = [
  ['names', 'the name'],
  ['all', 'the name, ids, for whom, and what belongs together'],
  ['none', 'nothing'],
];

export function wordsOfActors(actors: SentActors): string | undefined {
  return actorChoices.find(([choice]) => choice === actors)?.[1];
}

const membersOfActors = { names: true, all: 'all', none: false } as const;

/** Where a subscription may start. */
export const beginnings = [
  ['now', 'with changes recorded from now on'],
  ['start', 'with the oldest change that is kept'],
] as const;

type Members = Readonly<Record<string, unknown>>;

export function newDraft(q: string): SubscriptionDraft {
  return {
    name: '',
    enabled: true,
    q,
    from: 'now',
    maxAge: noDuration,
    hide: '',
    actors: 'names',
    type: 'webhook',
    texts: {},
    checks: {},
    headers: [],
  };
}

export function draftOf(subscription: Subscription): SubscriptionDraft {
  const { name, enabled, q, from, maxAge, hide = [], actors = true } = subscription;
  const members = targetOf(subscription);
  const { fields } = targets[members.type];
  const of = (kinds: readonly TargetField['kind'][]) => fields.filter(({ kind }) => kinds.includes(kind));
  return {
    name,
    enabled,
    q,
    from,
    maxAge: maxAge === undefined ? noDuration : durationOf(maxAge),
    hide: hide.join('\n'),
    actors: actors === 'all' ? 'all' : actors ? 'names' : 'none',
    type: members.type,
    texts: Object.fromEntries(
      of(['text', 'addresses', 'number', 'choice']).map((field) => [field.name, textOf(memberOf(members, field.name))]),
    ),
    checks: Object.fromEntries(of(['check']).map((field) => [field.name, memberOf(members, field.name) === true])),
    headers: draftHeaders(members.headers as object | undefined),
  };
}

/** What is sent for a draft. `current` is the subscription that is replaced. */
export function inputOf(draft: SubscriptionDraft, current: Subscription | undefined): SubscriptionInput {
  const { name, enabled, q, from, maxAge, hide, actors } = draft;
  const age = isoOf(maxAge);
  const paths = linesOf(hide);
  return {
    name: name.trim(),
    enabled,
    q,
    from: current?.from ?? from,
    ...(age === undefined ? {} : { maxAge: age }),
    ...(paths.length === 0 ? {} : { hide: paths }),
    ...(actors === 'names' ? {} : { actors: membersOfActors[actors] }),
    // Its members depend on its type. The service checks them, and its errors are shown at their fields.
    target: sentTarget(draft, current) as SubscriptionInput['target'],
    ...(current === undefined ? {} : { metadata: { version: current.metadata.version } }),
  };
}

/** The subscription as it is, to be written by another client. */
export function inputOfCurrent(current: Subscription): SubscriptionInput {
  return inputOf(draftOf(current), current);
}

function sentTarget(draft: SubscriptionDraft, current: Subscription | undefined): Members {
  const members: Record<string, unknown> = { type: draft.type };
  for (const field of targets[draft.type].fields) {
    const value = memberValue(field, draft, keepsSecret(field.name, draft.type, current));
    if (value === undefined) continue;
    const [member = '', inner] = field.name.split('.');
    members[member] = inner === undefined ? value : { ...(members[member] as Members | undefined), [inner]: value };
  }
  return members;
}

function memberValue({ name, kind }: TargetField, draft: SubscriptionDraft, hasSecret: boolean): unknown {
  const text = draft.texts[name]?.trim() ?? '';
  switch (kind) {
    case 'check':
      return draft.checks[name] === true ? true : undefined;
    case 'headers': {
      const named = draft.headers.filter((header) => header.name !== '' || header.value !== '');
      const entries = named.map(({ name: header, value, isStored }) => [
        header,
        isStored && value === '' ? mask : value,
      ]);
      return named.length === 0 ? undefined : Object.fromEntries(entries);
    }
    case 'secret':
      return text === '' && hasSecret ? mask : text === '' ? undefined : text;
    case 'number':
      return text === '' ? undefined : Number(text);
    case 'addresses': {
      const addresses = text.split(/[\s,;]+/).filter((address) => address !== '');
      return addresses.length > 1 ? addresses : addresses[0];
    }
    default:
      return text === '' ? undefined : text;
  }
}

/** Whether a secret is stored that stays without a new one. It belongs to its kind of target. */
export function keepsSecret(name: string, type: TargetType, current: Subscription | undefined): boolean {
  if (current === undefined) return false;
  const members = targetOf(current);
  return members.type === type && memberOf(members, name) !== undefined;
}

/** A member of a target; `threshold.count` is one of an object. */
export function memberOf(members: Members, name: string): unknown {
  const [member = '', inner] = name.split('.');
  const value = members[member];
  return inner === undefined ? value : (value as Members | undefined)?.[inner];
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ');
  return value === undefined ? '' : String(value);
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** What is wrong, by part of the form: `name`, `q`, `hide`, `target.url`. */
export type SubscriptionFaults = Readonly<Record<string, string | undefined>>;

const ownParts: readonly string[] = ['name', 'q', 'from', 'maxAge', 'hide', 'actors'];

/** Whether it is an alert on every change, which its maker may not have meant. */
export function alertsOnAll({ type, q }: SubscriptionDraft): boolean {
  return type === 'email' && q.trim() === '';
}

/** What is missing. The service checks the rest. */
export function missingParts(draft: SubscriptionDraft, current: Subscription | undefined): SubscriptionFaults {
  const found: Record<string, string> = draft.name.trim() === '' ? { name: 'Give it a name.' } : {};
  if (!/^\d*$/.test(draft.maxAge.count.trim())) found.maxAge = 'Write a whole number, such as 7.';
  for (const { name, label, kind, isRequired } of targets[draft.type].fields) {
    const isEmpty = (draft.texts[name] ?? '').trim() === '';
    const isKept = kind === 'secret' && keepsSecret(name, draft.type, current);
    if (isRequired === true && isEmpty && !isKept) found[`target.${name}`] = `${label} is needed.`;
    if (kind === 'number' && !isEmpty && !/^\d+$/.test(draft.texts[name]?.trim() ?? '')) {
      found[`target.${name}`] = 'Write a whole number, such as 10.';
    }
  }
  return found;
}

/** The part of the form for a field of the service; undefined if the form has none. */
export function partOf(field: string, { type }: SubscriptionDraft): string | undefined {
  const parts = [...ownParts, ...targets[type].fields.map(({ name }) => `target.${name}`)];
  return parts.find((part) => field === part || field.startsWith(`${part}.`) || field.startsWith(`${part}[`));
}
