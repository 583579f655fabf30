import type { FastifyReply, FastifyRequest } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { insecureSignIn } from './own-address.ts';
import type { AdmittedPerson, People, PeopleSessions } from './people-sessions.ts';
import type { ConsoleClients } from './ports.ts';
import type { SealedCookie } from './sealed-cookie.ts';

/** What the provider's response is checked against. */
interface Checks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** A company's provider and its rules. Methods reject if the provider is unreachable or its response is invalid. */
export interface PeopleSignIn extends People {
  begin(): Promise<{ url: URL; checks: Checks }>;
  /** A text: why the sign-in is refused; undefined: the code is not the provider's. */
  finish(callback: URL, checks: Checks): Promise<AdmittedPerson | string | undefined>;
}

interface PeopleRoutesOptions {
  peopleSessions: PeopleSessions;
  people: PeopleSignIn | undefined;
  /** Stores the checks of pending sign-ins in the browser that began them. */
  cookie: SealedCookie;
  checkOnce: ConsoleClients['checkOnce'];
  allowsSignIn: boolean;
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
}

/** Sign-in to the console with a company's account: to the provider and back (contract 18). */
export async function peopleRoutes(app: HttpServer, options: PeopleRoutesOptions): Promise<void> {
  const { peopleSessions, people, cookie, checkOnce, allowsSignIn, baseUrl = '', now } = options;
  if (people === undefined) return;
  // A HEAD, as link previews send it, would use up the sign-in.
  const hidden = { config: { neverCompressed: 'a session' }, schema: { hide: true }, exposeHeadRoute: false };

  app.get('/console/oidc', hidden, async (request, reply) => {
    if (!allowsSignIn) throw insecureSignIn();
    const to = ownPath(addressOf(request).searchParams.get('to') ?? '');
    const begun = await people.begin().catch((error: unknown) => request.log.warn({ err: error }, noProvider));
    if (begun === undefined) return await refuse(reply, 'provider', to);
    return await reply
      .header('set-cookie', keep([{ ...begun.checks, to, until: now() + signInLifetime }, ...underWay(request)]))
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
    const person = await finish(people, new URL(`${baseUrl}/console/oidc/callback${search}`), begun, request);
    if (typeof person === 'string') {
      request.log.warn({ reason: person }, 'a person was not signed in');
      return await refuse(reply, person, begun.to);
    }
    const session = await peopleSessions.signInPerson(person, tenantOf(begun.to), request);
    if (session === undefined) return await refuse(reply, 'not_admitted', begun.to);
    const { tenant, clientId } = session;
    request.log.info({ tenant, clientId }, 'signed in to the console with a company account');
    return await reply.header('set-cookie', session.cookie).redirect(`${baseUrl}/console/${begun.to}`, 303);
  });

  /** The console's page shows the reason, and another attempt leads to the same view. */
  async function refuse(reply: FastifyReply, reason: string, to = ''): Promise<FastifyReply> {
    const address = new URL(`${baseUrl}/console/${to}`);
    address.searchParams.set('refused', reason);
    return await reply.redirect(address.href, 303);
  }

  async function finish(signIn: PeopleSignIn, callback: URL, checks: Checks, request: FastifyRequest) {
    try {
      // Each wrong code costs a request to the provider, so it counts as a guess.
      return await checkOnce(request.ip, () => signIn.finish(callback, checks));
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
