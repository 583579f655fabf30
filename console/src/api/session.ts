import { ApiError } from '@annals/client';
import { computed, signal } from '@preact/signals';
import { basePath } from '../router/router.tsx';
import { apiUrl, reach } from './connection.ts';
import { errorOfResponse, withinLimit } from './failure.ts';

/** Who is signed in, as the service says. */
export interface Session {
  /** As the list of sessions has it. */
  readonly id: string;
  readonly tenant: string;
  /** The client's id. */
  readonly client: string;
  readonly name: string;
  /** What it was begun with. */
  readonly by: 'account' | 'link' | 'secret';
  readonly scopes: readonly string[];
  /** When the session ends at the latest, as RFC 3339 has it. */
  readonly expiresAt: string;
  /** Of a person with a company's account: every tenant that lets them in. */
  readonly tenants?: readonly string[];
  /** Of a session that sees a part of the history: of what it sees the whole. */
  readonly wholes?: 'entities' | 'documents' | 'changes';
  /** Of a person who can make keys: the scopes that these can have. */
  readonly keyScopes?: readonly string[];
}

export type Credentials =
  | { readonly clientId: string; readonly clientSecret: string }
  /** The text of a link that is good once. */
  | { readonly link: string }
  /** Another tenant, for a person who is signed in. */
  | { readonly tenant: string };

/** Whether people sign in with their company's account. The service writes it into the page. */
export const signsInPeople = document.querySelector('meta[name="annals-people"]') !== null;

/** Undefined before the sign-in. */
export const session = signal<Session | undefined>(undefined);

/** Whether a session has ended: the sign-in page says so. */
export const sessionEnded = signal(false);

/** One of them reads the history and exports it. */
export const historyScopes: readonly string[] = ['changelog.changelog_read', 'changelog.changelog_manage'];

/** One of them shows clients and keys. */
export const credentialScopes: readonly string[] = ['access.credential_view', 'access.credential_manage'];

/**
 * Abilities of a session in the history beyond its changes. They are used like scopes: what needs a missing one is not
 * shown.
 */
export const historyAbilities = {
  /** The feed, and saved views. */
  all: 'history of all',
  /** Names, and documents by them. */
  names: 'names of the history',
  /** Documents as they were. */
  documents: 'documents of the history',
} as const;

const scopes = computed(() => new Set([...(session.value?.scopes ?? []), ...abilities(session.value)]));

function abilities(of: Session | undefined): readonly string[] {
  if (!of?.scopes.some((scope) => historyScopes.includes(scope))) return [];
  const { all, names, documents } = historyAbilities;
  const { wholes } = of;
  if (wholes === undefined) return [all, names, documents];
  return wholes === 'entities' ? [names, documents] : wholes === 'documents' ? [documents] : [];
}

/** Whether the session has one of these scopes or abilities. What it may not do, the console does not show. */
export function allows(...needed: readonly string[]): boolean {
  return needed.some((scope) => scopes.value.has(scope));
}

/** Whether the session may read the history. */
export function readsHistory(): boolean {
  return allows(...historyScopes);
}

/** Whether the session may read the context of changes, and how they were recorded. */
export function readsContext(): boolean {
  return allows('changelog.changelog_manage');
}

/** Asks the service who is signed in. */
export async function readSession(): Promise<void> {
  const response = await reach(`${apiUrl}/session`, { headers: { accept: 'application/json' } });
  if (response.status !== 401) {
    session.value = await sessionOf(response);
    return;
  }
  session.value = undefined;
  // The browser keeps a request open whose body is not read.
  await response.body?.cancel();
}

/** Signs in. Throws ApiError where the service refuses. */
export async function signIn(credentials: Exclude<Credentials, { tenant: string }>): Promise<void> {
  session.value = await sessionOf(await postSession(credentials));
  sessionEnded.value = false;
}

/** Changes the tenant of a person who is signed in, and reloads the console. Throws ApiError if the service refuses. */
export async function changeTenant(tenant: string): Promise<void> {
  const response = await postSession({ tenant });
  if (!response.ok) throw await errorOfResponse(response);
  const { signInUrl } = (await response.json()) as { signInUrl?: string };
  // Who has keys in this tenant signs in to the other one beside it. The provider knows them, and asks for nothing.
  location.assign(signInUrl ?? new URL(basePath, location.origin));
}

async function postSession(credentials: Credentials): Promise<Response> {
  return await reach(`${apiUrl}/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify(credentials),
  });
}

export async function signOut(): Promise<void> {
  const response = await reach(`${apiUrl}/session`, { method: 'DELETE' });
  if (!response.ok && response.status !== 401) throw await errorOfResponse(response);
  sessionEnded.value = false;
  session.value = undefined;
  // A company's account is signed out of as well.
  if (response.status === 200) location.assign(((await response.json()) as { signOutUrl: string }).signOutUrl);
}

/** Calls the service for the session. A 401 shows the sign-in page at the same address. Throws LongAnswerError. */
export async function sessionFetch(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  // The cookie says who is calling.
  headers.delete('authorization');
  const response = await reach(input, { ...init, headers });
  noteVersion(response.headers);
  if (response.status === 401 && session.value !== undefined) {
    sessionEnded.value = true;
    session.value = undefined;
  }
  return await withinLimit(response);
}

/** As `sessionFetch`. Throws ApiError where the service refuses. */
export async function sessionAnswer(input: string, init: RequestInit = {}): Promise<Response> {
  const response = await sessionFetch(input, init);
  if (!response.ok) throw await errorOfResponse(response);
  return response;
}

/** Whether the history is sealed now. The first checkpoint may have come after the page. */
export async function readSealed(abort: AbortSignal): Promise<boolean> {
  const headers = { accept: 'application/json' };
  const answer: Session & { isSealed?: boolean } = await sessionOf(
    await sessionFetch(`${apiUrl}/session?sealed=true`, { headers, signal: abort }),
  );
  return answer.isSealed === true;
}

async function sessionOf(response: Response): Promise<Session> {
  if (!response.ok) throw await errorOfResponse(response);
  const answer: unknown = await response.json();
  if (isSession(answer)) return answer;
  throw new ApiError('invalid_answer', 'The service answered with something that is no session.');
}

function isSession(value: unknown): value is Session {
  return typeof value === 'object' && value !== null && 'tenant' in value && 'scopes' in value;
}

/** Whether the service has a newer console than this tab. */
export const isOutdated = signal(false);

/** The version of this tab, which the service writes into the page. */
const ownVersion = document.querySelector('meta[name="annals-console-version"]')?.getAttribute('content');

function noteVersion(headers: Headers): void {
  const current = headers.get('annals-console-version');
  if (ownVersion !== undefined && ownVersion !== null && current !== null && current !== ownVersion)
    isOutdated.value = true;
}
