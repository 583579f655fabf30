import { useEffect, useState } from 'preact/hooks';
import { apiUrl } from '../api/connection.ts';
import { useRequest } from '../api/requests.ts';
import { session, sessionAnswer, signOut } from '../api/session.ts';
import { Brand } from '../app/shell.tsx';
import { Button } from '../components/buttons.tsx';
import { FailureBox, Skeleton } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { tellFailure } from '../components/toasts.ts';
import { basePath } from '../router/router.tsx';
import { takeRefusal } from './sign-in-page.tsx';
import './authorize-page.css';

/** What a program asks for, as the service says. */
interface ShownRequest {
  readonly id: string;
  /** What the program calls itself. */
  readonly name: string;
  readonly programHost?: string;
  readonly redirectHost: string;
  readonly isLocal: boolean;
  readonly tenant: string;
  readonly mayAllow: boolean;
  /** Seconds. */
  readonly lasts: number;
  readonly endsWithSession: boolean;
}

const path = `${apiUrl}/authorizations`;

/** A program asks the person who is signed in for access to the history. */
export function AuthorizePage() {
  const request = useRequest(
    'authorization',
    async (signal): Promise<ShownRequest> => await (await sessionAnswer(path, { signal })).json(),
  );
  const [refused, setRefused] = useState(takeRefusal);
  const [error, setError] = useState<unknown>(undefined);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = 'Allow a program · Annals';
  }, []);

  const decide = async (id: string, allow: boolean) => {
    setBusy(true);
    setError(undefined);
    setRefused(undefined);
    try {
      const answer = await sessionAnswer(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify({ request: id, allow }),
      });
      const { location: next } = (await answer.json()) as { location: string };
      location.assign(next);
    } catch (refusal) {
      setError(refusal);
      // Another request may be in the cookie by now.
      request.reload();
    } finally {
      setBusy(false);
    }
  };

  const { value, isCurrent } = request;
  return (
    <main class="authorize">
      <section class="authorize-card" aria-busy={isBusy}>
        <Brand />
        <h1>Allow a program to read the history?</h1>
        {refused === undefined ? undefined : (
          <p class="authorize-warning" role="alert">
            {refused}
          </p>
        )}
        <FailureBox error={error ?? request.error} />
        {value === undefined ? (
          request.error === undefined ? (
            <Skeleton lines={4} />
          ) : undefined
        ) : (
          <>
            <Asking request={value} />
            <div class="authorize-choice">
              <Button disabled={isBusy || !isCurrent} onClick={() => void decide(value.id, false)}>
                Deny
              </Button>
              <Button
                kind="primary"
                disabled={isBusy || !isCurrent || !value.mayAllow}
                onClick={() => void decide(value.id, true)}
              >
                Allow
              </Button>
            </div>
          </>
        )}
        <SignedIn />
      </section>
    </main>
  );
}

function Asking({ request }: { readonly request: ShownRequest }) {
  const { name, programHost, redirectHost, isLocal, tenant, mayAllow, lasts, endsWithSession } = request;
  return (
    <>
      {programHost === undefined ? undefined : (
        <div>
          <p class="muted">The program is described at</p>
          <p class="authorize-host">
            <Name text={programHost} />
          </p>
        </div>
      )}
      <div>
        <p class="muted">The answer goes to</p>
        <p class="authorize-host">
          <Name text={redirectHost} />
        </p>
      </div>
      {isLocal ? (
        <p class="authorize-warning">
          That is this computer: any program on it may be asking. Allow it only if you have just connected one.
        </p>
      ) : undefined}
      <p>
        It calls itself <Name text={name} />. Annals cannot check that.
      </p>
      <p>
        It could search and read the change history of <Name as="strong" text={tenant} /> as far as you may, until{' '}
        {endsWithSession ? 'your session ends' : `${Math.round(lasts / 86_400)} days have passed`}, or you end it.
      </p>
      {mayAllow ? undefined : <OtherTenant tenant={tenant} />}
    </>
  );
}

function OtherTenant({ tenant }: { readonly tenant: string }) {
  const isTheirs = session.value?.tenants?.includes(tenant) === true && session.value.tenant !== tenant;
  const to = new URLSearchParams({ to: `authorize?${new URLSearchParams({ tenant })}` });
  return (
    <>
      <p class="authorize-warning" role="alert">
        You may not read the history of <Name text={tenant} /> in this session. To allow this, sign in to that tenant
        with a right to read it.
      </p>
      {isTheirs ? (
        <a class="button" href={`${basePath}oidc?${to}`}>
          Change to {tenant}
        </a>
      ) : undefined}
    </>
  );
}

function SignedIn() {
  const { name = '', tenant = '' } = session.value ?? {};
  return (
    <p class="authorize-signed-in">
      <span>
        Signed in as <Name text={name} /> in <Name text={tenant} />.
      </span>
      <Button kind="quiet" onClick={() => void signOut().catch(tellFailure)}>
        Sign out
      </Button>
    </p>
  );
}

const faults: Readonly<Record<string, string>> = {
  program: 'It has no client id that this service issued. Remove the connection in the program and connect it again.',
  redirect: 'It wants the answer at an address that it did not register.',
  parameters: 'Its request has a parameter twice, or one that Annals does not take.',
  type: 'Annals answers with a code in the query alone: response_type must be code.',
  pkce: 'It must send a code_challenge, with the code_challenge_method S256.',
  scope: 'It asks for another scope than changelog.changelog_read.',
  resource: 'It asks for another resource than the MCP server of a tenant at this address.',
  length: 'Its request is too long. Its state must have at most 1,024 characters.',
};

/** The request of a program that cannot be shown, with the reason of the address. */
export function AuthorizeFault({ fault }: { readonly fault: string }) {
  useEffect(() => {
    document.title = 'Allow a program · Annals';
  }, []);
  return (
    <main class="authorize">
      <section class="authorize-card">
        <Brand />
        <h1>A program asked for access in a way that Annals refuses</h1>
        <p>{faults[fault] ?? faults.parameters}</p>
        <p class="muted">Nothing was allowed. You can close this page.</p>
      </section>
    </main>
  );
}
