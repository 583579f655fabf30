import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { AnnalsError } from '../../core/errors.ts';
import { consoleApiPath } from '../../http/browser-security.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { insufficientScopes, type Scope } from '../../http/scopes.ts';
import { insecureSignIn } from './own-address.ts';
import type { AdmittedPerson, People, PeopleSessions } from './people-sessions.ts';
import type { ConsoleClients, Person } from './ports.ts';
import type { SealedCookie } from './sealed-cookie.ts';
import type { ProviderLogout } from './session-store.ts';
import type { Session, Sessions } from './sessions.ts';
import type { JudgedSignIn, SignInTests } from './sign-in-test.ts';

/** What the provider's response is checked against. */
interface Checks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** A sign-in that was refused: why, and for the log what is known of the person, without values of claims. */
interface RefusedSignIn {
  readonly refused: string;
  readonly person?: object;
}

/** A company's provider and its rules. Methods reject if the provider is unreachable or its response is invalid. */
export interface PeopleSignIn extends People {
  readonly issuer: string;
  /** With `keepsNothing` for a test. */
  begin(options?: { keepsNothing?: boolean }): Promise<{ url: URL; checks: Checks }>;
  /** Undefined: the code is not the provider's. */
  finish(callback: URL, checks: Checks): Promise<AdmittedPerson | RefusedSignIn | undefined>;
  /** As `finish`, for a test of the rules of a tenant. A text: why the provider refused it. */
  judge(callback: URL, checks: Checks, tenant: string): Promise<JudgedSignIn | string | undefined>;
  /** The rules that name the tenant. */
  rulesOf(tenant: string): readonly object[];
  /** What a logout token ends, or in printable ASCII why it does not count. */
  readLogout(token: string): Promise<(ProviderLogout & { readonly tokenId: string }) | string>;
}

/** A program that the person of a session has allowed, before they sign in for it. */
export interface GrantApproval extends Person {
  /** A hash of the program's request, which the browser keeps. */
  readonly request: string;
  readonly tenant: string;
  readonly session: string;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** Sign-ins for programs, whose grants belong to another module. */
export interface Approvals {
  /** Undefined for an approval that this installation did not seal, or that expired. */
  open(text: string): GrantApproval | undefined;
  /** Where the browser goes, and the cookie that ends its request. A word: why there is no grant. */
  finish(
    approval: GrantApproval,
    person: AdmittedPerson,
    request: FastifyRequest,
  ): Promise<{ location: string; cookie: string } | string>;
}

interface PeopleRoutesOptions {
  sessions: Sessions;
  tests: SignInTests;
  peopleSessions: PeopleSessions;
  people: PeopleSignIn | undefined;
  /** Stores the checks of pending sign-ins in the browser that began them. */
  cookie: SealedCookie;
  checkOnce: ConsoleClients['checkOnce'];
  allowsSignIn: boolean;
  /** Sign-ins for programs; undefined: there are none. */
  approvals?: Approvals | undefined;
  /** The public address. */
  baseUrl: string | undefined;
  now: () => number;
}

/** Milliseconds in which a person must return from the provider (contract 18). */
export const signInLifetime = 10 * 60_000;
const maxPath = 2_000;
/** Maximum characters of the cookie's content: browsers store 4,096 of a cookie, and it is sealed. */
const maxKept = 2_700;

/** A pending sign-in. The cookie has a list of them, newest first, since each tab may begin one. */
interface Begun extends Checks {
  readonly to: string;
  readonly until: number;
  /** A test for this session, which makes none. */
  readonly test?: { readonly tenant: string; readonly session: string };
  /** For a program that the person allowed, which makes no session either. */
  readonly approval?: GrantApproval;
}

const viewing: readonly Scope[] = ['access.credential_view', 'access.credential_manage'];
const managing: readonly Scope[] = ['access.credential_manage'];

/** Sign-in to the console with a company's account: to the provider and back (contract 18). */
export async function peopleRoutes(app: HttpServer, options: PeopleRoutesOptions): Promise<void> {
  const {
    sessions,
    tests,
    peopleSessions,
    people,
    cookie,
    checkOnce,
    allowsSignIn,
    approvals,
    baseUrl = '',
    now,
  } = options;
  if (people === undefined) return;
  // A HEAD, as link previews send it, would use up the sign-in.
  const hidden = { config: { neverCompressed: 'a session' }, schema: { hide: true }, exposeHeadRoute: false };

  app.get('/console/oidc', hidden, async (request, reply) => {
    if (!allowsSignIn) throw insecureSignIn();
    const { searchParams } = addressOf(request);
    const approved = searchParams.get('approval');
    const approval = approved === null ? undefined : approvals?.open(approved);
    if (approved !== null && approval === undefined) return await refuse(reply, 'expired', authorizeView);
    const to = approval === undefined ? ownPath(searchParams.get('to') ?? '') : authorizeView;
    const begun = await people.begin().catch((error: unknown) => request.log.warn({ err: error }, noProvider));
    if (begun === undefined) return await refuse(reply, 'provider', to);
    const pending = { ...begun.checks, to, until: now() + signInLifetime, ...(approval && { approval }) };
    return await reply
      .header('set-cookie', keep([pending, ...underWay(request)]))
      .header('cache-control', 'no-store')
      .redirect(begun.url.href, 302);
  });

  app.get('/console/oidc/callback', hidden, async (request, reply) => {
    reply.header('cache-control', 'no-store');
    const { search, searchParams } = addressOf(request);
    const all = underWay(request);
    const begun = all.find(({ state }) => state === searchParams.get('state'));
    if (begun === undefined) return await refuse(reply, 'expired');
    // Single use: the browser keeps nothing for another attempt, whatever the outcome.
    reply.header('set-cookie', keep(all.filter((pending) => pending !== begun)));
    const callback = new URL(`${baseUrl}/console/oidc/callback${search}`);
    const { test } = begun;
    if (test !== undefined) {
      const result = await finish(request, () => people.judge(callback, begun, test.tenant));
      await tests.keep(test, typeof result === 'string' ? { outcome: result } : result);
      return await reply.redirect(`${baseUrl}/console/${begun.to}`, 303);
    }
    const person = await finish(request, () => people.finish(callback, begun));
    if (typeof person === 'string' || 'refused' in person) {
      const { refused: reason, person: known } = typeof person === 'string' ? { refused: person } : person;
      request.log.warn({ reason, ...known }, 'a person was not signed in');
      return await refuse(reply, reason, begun.to);
    }
    if (begun.approval !== undefined) {
      const granted = (await approvals?.finish(begun.approval, person, request)) ?? 'expired';
      if (typeof granted === 'string') return await refuse(reply, granted, begun.to);
      reply.header('set-cookie', granted.cookie);
      return await reply.redirect(granted.location, 303);
    }
    const session = await peopleSessions.signInPerson(person, tenantOf(begun.to), request);
    if (session === undefined) {
      const { issuer, subject, admissions } = person;
      const tenants = [...admissions.keys()].slice(0, maxLoggedTenants);
      request.log.warn({ reason: 'not_admitted', issuer, subject, tenants }, 'no tenant of this person exists');
      return await refuse(reply, 'not_admitted', begun.to);
    }
    const { tenant, clientId } = session;
    request.log.info({ tenant, clientId }, 'signed in to the console with a company account');
    return await reply.header('set-cookie', session.cookie).redirect(`${baseUrl}/console/${begun.to}`, 303);
  });

  app.get(testPath, ofSession, async (request) => {
    const { session, tenant } = await sessionWith(viewing, request);
    const test = await tests.read({ tenant, session });
    return { issuer: people.issuer, rules: people.rulesOf(tenant), ...(test && { test }) };
  });

  // Under the console's rules of origin, so that no other site begins a test, which would tell of its visitor.
  app.post(testPath, { ...ofSession, schema: { hide: true, body: NoMembers } }, async (request, reply) => {
    const { session, tenant, clientId } = await sessionWith(managing, request);
    const begun = await people.begin({ keepsNothing: true }).catch((error: unknown) => {
      request.log.warn({ err: error }, noProvider);
      throw new AnnalsError(
        'service_unavailable',
        "Your company's provider could not be reached. The log has the reason.",
      );
    });
    request.log.info({ tenant, clientId }, 'a test of the sign-in began');
    const pending = { ...begun.checks, to: testView, until: now() + signInLifetime, test: { tenant, session } };
    return await reply.header('set-cookie', keep([pending, ...underWay(request)])).send({ url: begun.url.href });
  });

  async function sessionWith(scopes: readonly Scope[], request: FastifyRequest): Promise<Session> {
    const session = await sessions.find(request);
    if (!session.scopes.some((scope) => scopes.includes(scope))) throw insufficientScopes();
    return session;
  }

  /** The console's page shows the reason, and another attempt leads to the same view. */
  async function refuse(reply: FastifyReply, reason: string, to = ''): Promise<FastifyReply> {
    const address = new URL(`${baseUrl}/console/${to}`);
    address.searchParams.set('refused', reason);
    return await reply.redirect(address.href, 303);
  }

  async function finish<Result>(
    request: FastifyRequest,
    find: () => Promise<Result | undefined>,
  ): Promise<Result | 'too_many' | 'provider'> {
    try {
      // Each wrong code costs a request to the provider, so it counts as a guess.
      return await checkOnce(request.ip, find);
    } catch (error) {
      request.log.warn({ err: error }, 'the answer of the OpenID provider was refused');
      return error instanceof AnnalsError && error.type === 'rate_limit_exceeded' ? 'too_many' : 'provider';
    }
  }

  /** The browser's pending sign-ins. */
  function underWay({ headers }: FastifyRequest): readonly Begun[] {
    const kept = cookie.read(headers.cookie);
    const all = kept === undefined ? [] : (JSON.parse(kept) as Begun[]);
    return all.filter(({ until }) => until > now());
  }

  /** The `Set-Cookie` header for the newest ones that fit. */
  function keep(all: readonly Begun[]): string {
    if (all.length === 0) return cookie.clear;
    const text = JSON.stringify(all);
    return text.length > maxKept ? keep(all.slice(0, -1)) : cookie.write(text, signInLifetime);
  }
}

const testPath = `${consoleApiPath}/session/sign-in`;
const testView = 'security/sign-in';
/** Where people decide about programs. */
const authorizeView = 'authorize';
const NoMembers = Type.Object({}, { additionalProperties: false });
const ofSession = { config: { isOfSession: true, neverCompressed: 'a session' }, schema: { hide: true } };
/** Tenants of a line of the log. */
const maxLoggedTenants = 50;

const noProvider = 'the OpenID provider cannot be reached';

function addressOf({ url }: FastifyRequest): URL {
  return new URL(url, 'http://localhost');
}

/**
 * The address of a view of the console, without a leading slash; empty for other texts, which prevents open redirects.
 */
function ownPath(to: string): string {
  const base = 'http://localhost/console/';
  const url = URL.parse(to.replace(/^[/\\]+/, ''), base);
  if (url === null || !url.href.startsWith(base)) return '';
  const path = `${url.pathname}${url.search}`.slice('/console/'.length);
  return path.length > maxPath || notAView.test(path) ? '' : path;
}

/** Views that would begin a new sign-in, in a loop. A percent sign may encode any of their letters. */
const notAView = /^(?:oidc|api|assets)(?:[/?]|$)|^[^/?]*%/;

function tenantOf(to: string): string | undefined {
  return new URL(to, 'http://localhost/console/').searchParams.get('tenant') ?? undefined;
}
