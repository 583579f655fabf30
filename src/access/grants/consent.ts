import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import { type Caller, callerOf } from '../../http/credentials.ts';
import { mayReadHistory } from '../../http/scopes.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { noteAccess } from '../accesses/store.ts';
import { findSession } from '../sessions/listed-sessions.ts';
import type { Approvals, GrantApproval } from '../sessions/people-routes.ts';
import type { AdmittedPerson, PeopleSessions } from '../sessions/people-sessions.ts';
import type { GrantHolder } from '../sessions/ports.ts';
import type { SealedCookie } from '../sessions/sealed-cookie.ts';
import { lockSession } from '../sessions/session-store.ts';
import type { Session, Sessions } from '../sessions/sessions.ts';
import { answerTo } from './authorization-request.ts';
import { grantLifetime, insertGrant, maxGrants } from './grant-store.ts';
import type { MetadataDocuments } from './metadata-documents.ts';
import { hashOfProgram, isRedirectUriOf, type Program, targetOf } from './programs.ts';
import { newGrantId, newGrantKey, writeToken } from './token-text.ts';
import { sealGrantKey } from './verify-grant.ts';

/** Milliseconds in which a person must decide. */
export const requestLifetime = 10 * 60_000;
/** Milliseconds in which the person who allowed a program must return from their company's provider. */
const approvalLifetime = requestLifetime;
/** Bytes of a request: browsers store 4,096 of a cookie, and it is sealed. */
const maxRequest = 2_900;

/** A request to sign in, kept in the browser until the person decides. */
export interface PendingRequest {
  /** `isUnread`: the metadata document at `url` was not read yet, so that nothing of the program is known. */
  readonly program: {
    readonly hash: string;
    readonly name: string;
    readonly url?: string | undefined;
    readonly isUnread?: boolean | undefined;
  };
  readonly redirectUri: string;
  readonly state?: string | undefined;
  readonly challenge: string;
  readonly tenant?: string | undefined;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** What the page shows of a request. */
export interface ShownRequest {
  /** A hash of the request and what is shown: what the person decides on. */
  readonly id: string;
  readonly name: string;
  /** The host of a program whose client id is a URL. */
  readonly programHost?: string;
  readonly redirectHost: string;
  /** Any program on the person's computer may be asking. */
  readonly isLocal: boolean;
  /** The tenant whose history the program would read. */
  readonly tenant: string;
  /** Whether the session is one of this tenant, with a right to read its history. */
  readonly mayAllow: boolean;
  /** Of the grant, in seconds. */
  readonly lasts: number;
  /** Whether the grant ends when the person signs out. */
  readonly endsWithSession: boolean;
}

interface ConsentOptions {
  sealer: Sealer;
  cookie: SealedCookie;
  sessions: Sessions;
  peopleSessions: PeopleSessions;
  /** Whether people sign in with a company's account. */
  signsInPeople: boolean;
  documents: MetadataDocuments;
  /** The public address. */
  address: string;
  /** Milliseconds since 1970. */
  now: () => number;
}

/** A person decides whether a program may act for them. */
export class Consent implements Approvals {
  readonly #options: ConsentOptions;

  constructor(options: ConsentOptions) {
    this.#options = options;
  }

  /** The `Set-Cookie` header that keeps the request; undefined if it is too long. */
  keep(
    { clientId, name }: Pick<Program, 'clientId' | 'name'>,
    request: Omit<PendingRequest, 'program' | 'until'>,
    document: Pick<PendingRequest['program'], 'url' | 'isUnread'> = {},
  ): string | undefined {
    const program = { hash: hashOfProgram(clientId).toString('base64url'), name, ...document };
    const text = JSON.stringify({ ...request, program, until: this.#options.now() + requestLifetime });
    return Buffer.byteLength(text) > maxRequest ? undefined : this.#options.cookie.write(text, requestLifetime);
  }

  /**
   * The browser's request as the session sees it, and the `Set-Cookie` header that keeps what the program's metadata
   * document says. Throws resource_not_found if there is none, and as `MetadataDocuments`.
   */
  async read(
    session: Session,
    { headers }: Pick<FastifyRequest, 'headers'>,
  ): Promise<{ shown: ShownRequest; cookie: string | undefined }> {
    const kept = this.#pendingOf(headers.cookie) ?? noRequest();
    const { program, until: _, ...request } = kept.pending;
    const { url, isUnread = false } = program;
    if (url === undefined || !isUnread) return { shown: this.#show(session, kept), cookie: undefined };
    const { person, clientId } = session;
    const described = await this.#options.documents.read(url, JSON.stringify(person ?? clientId));
    if (!isRedirectUriOf(described, request.redirectUri)) throw foreignRedirect();
    const cookie = this.keep(described, request, { url });
    const read = cookie && this.#pendingOf(cookie);
    if (cookie === undefined || !read) throw noRequest();
    return { shown: this.#show(session, read), cookie };
  }

  #show(session: Session, { pending, text }: { pending: PendingRequest; text: string }): ShownRequest {
    const { program, redirectUri, tenant = session.tenant } = pending;
    const { host: redirectHost, isLocal } = targetOf(redirectUri);
    const shown = {
      name: program.name,
      ...(program.url !== undefined && { programHost: new URL(program.url).host }),
      redirectHost,
      isLocal,
      tenant,
      mayAllow: tenant === session.tenant && mayReadHistory(session.scopes),
      lasts: grantLifetime / 1_000,
      endsWithSession: session.renews !== true,
    };
    return { id: hash('sha256', JSON.stringify([text, shown, session.session]), 'base64url'), ...shown };
  }

  /**
   * Where the browser goes after the person's decision: back to the program, or to the company's provider, to sign in
   * for the program. Throws conflict_resource if the request is not the one that was shown.
   */
  async decide(
    session: Session,
    { id, allow }: { id: string; allow: boolean },
    request: FastifyRequest,
  ): Promise<{ location: string; isDone: boolean }> {
    const { address, sealer, signsInPeople, now } = this.#options;
    const kept = this.#pendingOf(request.headers.cookie) ?? noRequest();
    const { pending } = kept;
    const shown = this.#show(session, kept);
    if (shown.id !== id || pending.program.isUnread === true) throw otherRequest();
    if (!allow) return { location: answerTo(pending, { error: 'access_denied' }, address), isDone: true };
    if (!shown.mayAllow)
      throw new AnnalsError(
        'insufficient_permissions',
        `Sign in to the tenant ${shown.tenant} with a right to read its history.`,
      );
    const { session: ofSession, tenant, person } = session;
    if (person !== undefined && signsInPeople) {
      const approval: GrantApproval = {
        request: this.#hashOfPending(request.headers.cookie),
        tenant,
        session: ofSession,
        ...person,
        until: now() + approvalLifetime,
      };
      const sealed = Buffer.from(sealer.seal(Buffer.from(JSON.stringify(approval)), purpose)).toString('base64url');
      return { location: `${address}/console/oidc?${new URLSearchParams({ approval: sealed })}`, isDone: false };
    }
    const location = await this.#grant(pending, tenant, session, callerOf(request), (transaction) =>
      this.#sessionOf(transaction, tenant, ofSession),
    );
    return { location, isDone: true };
  }

  get clearCookie(): string {
    return this.#options.cookie.clear;
  }

  /** An approval that `decide` sealed, and that has not expired. */
  open(text: string): GrantApproval | undefined {
    const opened = this.#options.sealer.open(Buffer.from(text, 'base64url'), purpose);
    if (opened === undefined) return undefined;
    const approval = JSON.parse(Buffer.from(opened).toString()) as GrantApproval;
    return approval.until > this.#options.now() ? approval : undefined;
  }

  /**
   * The person who allowed a program has signed in for it. Returns where the browser goes: back to the program. A word:
   * why there is no grant.
   */
  async finish(
    approval: GrantApproval,
    person: AdmittedPerson,
    request: FastifyRequest,
  ): Promise<{ location: string; cookie: string } | 'expired' | 'other_person' | 'not_admitted'> {
    const { tenant, issuer, subject, session } = approval;
    const kept = this.#pendingOf(request.headers.cookie);
    if (kept === undefined || this.#hashOfPending(request.headers.cookie) !== approval.request) return 'expired';
    if (person.issuer !== issuer || person.subject !== subject) return 'other_person';
    if (!mayReadHistory(person.admissions.get(tenant)?.scopes ?? [])) return 'not_admitted';
    const caller = callerOf(request);
    const { peopleSessions } = this.#options;
    const location = await this.#grant(kept.pending, tenant, { person, clientId: '' }, caller, (transaction) =>
      person.refreshToken === undefined
        ? this.#sessionOf(transaction, tenant, session)
        : peopleSessions.startForGrant(transaction, person, tenant, { caller, lifetime: grantLifetime }),
    );
    return { location, cookie: this.clearCookie };
  }

  async #grant(
    { program, redirectUri, state, challenge }: PendingRequest,
    tenant: string,
    { person, clientId: holder }: Pick<Session, 'person' | 'clientId'>,
    caller: Caller,
    startSession: (
      transaction: DatabaseTransaction,
    ) => Promise<{ sessionHash: Uint8Array; clientId: string; ofOwnSignIn: boolean }>,
  ): Promise<string> {
    const { sessions, sealer, address } = this.#options;
    const [id, key] = [newGrantId(), newGrantKey()];
    const owner = person && { issuer: person.issuer, subject: person.subject };
    await sessions.write(tenant, async (transaction) => {
      const of: GrantHolder = owner ?? { clientId: holder };
      await sessions.endGrants(transaction, tenant, { of, kept: maxGrants - 1 }, { why: 'too_many', caller });
      const session = await startSession(transaction);
      await insertGrant(transaction, {
        ...session,
        tenant,
        id,
        name: program.name,
        programHash: Buffer.from(program.hash, 'base64url'),
        programUrl: program.url,
        redirectUri,
        challenge,
        person: owner,
        sealedKey: sealGrantKey(sealer, tenant, key),
      });
      const details = { redirect: targetOf(redirectUri).host };
      await noteAccess(transaction, { tenant, kind: 'grant_made', clientId: id, person: owner, details, caller });
    });
    const code = writeToken(key, { kind: 'ac', tenant, grantId: id, number: 0 });
    return answerTo({ redirectUri, state }, { code }, address);
  }

  /** Locks the session against its end, which ends the grant. */
  async #sessionOf(transaction: DatabaseTransaction, tenant: string, id: string) {
    const sessionHash = await findSession(transaction, tenant, id);
    const session = sessionHash && (await lockSession(transaction, tenant, sessionHash));
    if (sessionHash === undefined || session === undefined || session.forKeys) throw otherRequest();
    return { sessionHash, clientId: session.clientId, ofOwnSignIn: false };
  }

  #pendingOf(cookie: string | undefined): { pending: PendingRequest; text: string } | undefined {
    const text = this.#options.cookie.read(cookie);
    if (text === undefined) return undefined;
    const pending = JSON.parse(text) as PendingRequest;
    return pending.until > this.#options.now() ? { pending, text } : undefined;
  }

  #hashOfPending(cookie: string | undefined): string {
    return hash('sha256', this.#options.cookie.read(cookie) ?? '', 'base64url');
  }
}

const purpose = 'approval of a program';

function noRequest(): never {
  throw new AnnalsError('resource_not_found', 'No program asks for access in this browser, or it took too long.');
}

function foreignRedirect(): AnnalsError {
  return new AnnalsError(
    'validation_violation',
    'The program wants the answer at a redirect URI that the document that describes it does not have.',
  );
}

function otherRequest(): AnnalsError {
  return new AnnalsError(
    'conflict_resource',
    'Another program has asked for access since, or your session has changed. Look at the request again.',
  );
}
