import type { Caller, Credentials, Restriction } from '../../http/credentials.ts';
import type { Scope } from '../../http/scopes.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';

export interface SignedInClient {
  readonly tenant: string;
  readonly clientId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly revoked: boolean;
  /** How often its secret was replaced. */
  readonly rotations: number;
}

type ClientState = Pick<Credentials, 'restriction' | 'scopes'> & { readonly name: string; readonly revoked: boolean };

/** The clients, which belong to another module. */
export interface ConsoleClients {
  /** Rejects with an AccessTokenFault, and with rate_limit_exceeded (429) after too many wrong secrets. */
  checkSecret(client: { clientId: string; clientSecret: string; address: string }): Promise<SignedInClient>;
  /** As `checkSecret`, for a one-time secret. `find` returns undefined for a wrong one. */
  checkOnce<Result>(address: string, find: () => Promise<Result | undefined>): Promise<Result>;
  find(db: Database, tenant: string, clientId: string): Promise<SignedInClient | undefined>;
  /** As `find`; its secret cannot be replaced until the transaction ends. */
  lock(transaction: DatabaseTransaction, tenant: string, clientId: string): Promise<SignedInClient | undefined>;
  /** The state of the client, at most 5 seconds old. */
  findState(tenant: string, clientId: string): ClientState | undefined | Promise<ClientState | undefined>;
  /** Deletes the client of a link, after its session and link. */
  remove(db: Database, tenant: string, clientId: string): Promise<void>;
}

export type Person = NonNullable<Credentials['person']>;

interface NewKeyOfPerson extends Pick<Credentials, 'tenant' | 'clientId' | 'scopes'> {
  readonly name: string;
  readonly person: Person;
  /** Milliseconds. */
  readonly lifetime: number;
}

/** The keys, which belong to another module. A key is created by the client of a session and has its rights. */
export interface ConsoleKeys {
  /** The scopes that a key can have if its maker has these. */
  scopesOf(scopes: readonly Scope[]): readonly Scope[];
  make(transaction: DatabaseTransaction, key: NewKeyOfPerson): Promise<object & { id: string }>;
  /** The valid ones, newest first. */
  list(db: Database, tenant: string, person: Person): Promise<readonly object[]>;
  /** Revokes a key of the person. False if it was not valid. */
  revoke(transaction: DatabaseTransaction, tenant: string, which: { keyId: string; person: Person }): Promise<boolean>;
  /** Revokes the keys and the clients that a person made, by this client if it is named. Nothing without a person. */
  revokeMadeBy(
    transaction: DatabaseTransaction,
    tenant: string,
    which: { clientId?: string; person?: Person | undefined; why: string },
  ): Promise<void>;
  /** The latest expiry of the keys and clients that its person made; undefined: there are none. */
  lastOf(db: Database, tenant: string, clientId: string): Promise<Date | undefined>;
}

/** Why grants end, for the accesses. */
export interface GrantEnding {
  readonly why?: string | undefined;
  /** Who ends grants that may not be theirs. */
  readonly by?: { readonly name: string; readonly clientId?: string | undefined } | undefined;
  readonly caller?: Caller | undefined;
}

/** A person, or a client that is no person's. */
export type GrantHolder = Person | { readonly clientId: string };

/** Which grants: one, those of a session, or all but the newest of a holder. */
export type WhichGrants =
  | { readonly id: string; readonly of?: GrantHolder | undefined }
  | { readonly sessionHash: Uint8Array }
  | { readonly of: GrantHolder; readonly kept: number };

/**
 * Ends what people allowed programs; another module has the grants. `ownSession`: the session of a sign-in that was made
 * for the grant alone.
 */
export type EndGrants = (
  transaction: DatabaseTransaction,
  tenant: string,
  which: WhichGrants,
  ending: GrantEnding,
) => Promise<{ readonly ownSession: Uint8Array | undefined }[]>;

/** What a restriction shows completely, so that the page sends no request that would be refused. */
export type WholesOf = (restriction: Restriction) => string;

/** Whether the tenant's history has a checkpoint, so that the page requests no proof without one. */
export type IsSealed = (tenant: string) => Promise<boolean>;

/** An event of the console for the tenant's accesses, which belong to another module. */
interface ConsoleAccessEvent extends Pick<Credentials, 'tenant' | 'clientId' | 'person'> {
  readonly kind: 'signed_in' | 'signed_out' | 'session_ended' | 'refused';
  readonly details?: Readonly<Record<string, string>>;
  readonly caller?: Caller | undefined;
  readonly session?: string;
}

/** Writes the event in the transaction of its subject. */
export type NoteConsoleAccess = (transaction: DatabaseTransaction, event: ConsoleAccessEvent) => Promise<void>;
