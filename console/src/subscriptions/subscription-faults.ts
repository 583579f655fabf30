import type { Subscription } from '@annals/client';
import { ApiError, type ErrorDetail } from '@annals/client';
import { keepsSecret, type SubscriptionDraft } from './subscription-draft.ts';
import { targets } from './target-fields.ts';

/** What is wrong, by part of the form: `name`, `q`, `hide`, `target.url`. */
export type SubscriptionFaults = Readonly<Record<string, string>>;

const ownParts: readonly string[] = ['name', 'q', 'from', 'maxAge', 'hide'];

/** What is missing. All else the service tells. */
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

/** The details of a refusal, each at its part of the form. */
export function refusedParts(error: unknown, draft: SubscriptionDraft): SubscriptionFaults {
  const found: Record<string, string> = {};
  for (const { field, message } of detailsOf(error)) {
    const part = partOf(field, draft);
    if (part !== undefined) found[part] ??= part === field ? message : `${field.slice(part.length + 1)}: ${message}`;
  }
  return found;
}

/** The error, unless all of it stands at parts of the form. */
export function errorOfRest(error: unknown, draft: SubscriptionDraft): unknown {
  const details = detailsOf(error);
  return details.length > 0 && details.every(({ field }) => partOf(field, draft) !== undefined) ? undefined : error;
}

/** The part of the form that a field of the service stands for; undefined where the form has none. */
function partOf(field: string, { type }: SubscriptionDraft): string | undefined {
  const parts = [...ownParts, ...targets[type].fields.map(({ name }) => `target.${name}`)];
  return parts.find((part) => field === part || field.startsWith(`${part}.`) || field.startsWith(`${part}[`));
}

function detailsOf(error: unknown): readonly ErrorDetail[] {
  return error instanceof ApiError ? error.details : [];
}
