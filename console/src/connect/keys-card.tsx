import { useState } from 'preact/hooks';
import { errorOfResponse } from '../api/failure.ts';
import { useRequest } from '../api/requests.ts';
import { apiUrl, sessionFetch } from '../api/session.ts';
import { Button } from '../components/buttons.tsx';
import { FormField } from '../components/forms.tsx';
import { ConfirmDialog } from '../components/overlays.tsx';
import { TableScroll } from '../components/page.tsx';
import { FailureBox, Skeleton } from '../components/states.tsx';
import { Time } from '../components/values.tsx';

const lifetimes = [7, 30, 90];

interface KeysCardProps {
  readonly made: MadeKey | undefined;
  readonly onMade: (key: MadeKey | undefined) => void;
}

/** The keys of the person who is signed in: what there is, a new one, and an end. */
export function KeysCard({ made, onMade }: KeysCardProps) {
  const { value: keys, error, reload } = useRequest('own keys', listOwnKeys);
  const [days, setDays] = useState(90);
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<unknown>();
  const [revoking, setRevoking] = useState<OwnKey>();

  const make = async () => {
    setBusy(true);
    setRefusal(undefined);
    try {
      onMade(await makeOwnKey(days));
      reload();
    } catch (reason) {
      setRefusal(reason);
    }
    setBusy(false);
  };
  const revoke = async ({ id }: OwnKey) => {
    await revokeOwnKey(id);
    if (made?.id === id) onMade(undefined);
    reload();
  };

  return (
    <section class="card">
      <h2 class="card-header">Your keys</h2>
      <div class="card-body connect-card">
        <p>
          A key sees what you see, and only reads the history. It ends when its days are over, and within five minutes
          after your company lets you in no longer.
        </p>
        <div class="connect-new">
          <FormField label="Good for">
            {(control) => (
              <select {...control} value={days} onChange={(event) => setDays(Number(event.currentTarget.value))}>
                {lifetimes.map((count) => (
                  <option key={count} value={count}>
                    {count} days
                  </option>
                ))}
              </select>
            )}
          </FormField>
          <Button kind="primary" icon="plus" disabled={isBusy} onClick={() => void make()}>
            Make a key
          </Button>
        </div>
        {refusal === undefined ? undefined : <FailureBox error={refusal} />}
        {error !== undefined ? <FailureBox error={error} onRetry={reload} /> : undefined}
        {keys === undefined ? (
          error === undefined ? (
            <Skeleton />
          ) : undefined
        ) : (
          <Keys keys={keys} onRevoke={setRevoking} />
        )}
      </div>
      {revoking === undefined ? undefined : (
        <ConfirmDialog
          title="Revoke this key?"
          action="Revoke"
          onConfirm={() => revoke(revoking)}
          onClose={() => setRevoking(undefined)}
        >
          <p>
            Programs that have the key <code>{shownId(revoking)}</code> stop within five seconds.
          </p>
        </ConfirmDialog>
      )}
    </section>
  );
}

function Keys({ keys, onRevoke }: { readonly keys: readonly OwnKey[]; readonly onRevoke: (key: OwnKey) => void }) {
  if (keys.length === 0) return <p class="muted">You have no key.</p>;
  return (
    <TableScroll label="Your keys">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Made</th>
            <th scope="col">Last used</th>
            <th scope="col">Ends</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key.id}>
              <td class="nowrap">
                <code>{shownId(key)}</code>
              </td>
              <td class="nowrap">
                <Time at={key.createdAt} />
              </td>
              <td class="nowrap">{key.usedAt === null ? 'never' : <Time at={key.usedAt} />}</td>
              <td class="nowrap">
                <Time at={key.expiresAt} />
              </td>
              <td>
                <Button kind="quiet" aria-label={`Revoke ${shownId(key)}`} onClick={() => onRevoke(key)}>
                  Revoke
                </Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableScroll>
  );
}

/** How the key begins, as it stands in the settings of a program. */
function shownId({ id }: OwnKey): string {
  return `annals_${id}_…`;
}

/** A key of the person who is signed in. */
interface OwnKey {
  readonly id: string;
  /** RFC 3339, as the others. */
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly usedAt: string | null;
}

/** A key right after it was made: its text is shown this once. */
export interface MadeKey extends OwnKey {
  readonly key: string;
}

const url = `${apiUrl}/session/keys`;

async function listOwnKeys(signal: AbortSignal): Promise<readonly OwnKey[]> {
  const { keys } = (await (await answered(sessionFetch(url, { signal }))).json()) as { keys: readonly OwnKey[] };
  return keys;
}

/** Makes a key that is good for so many days. */
async function makeOwnKey(days: number): Promise<MadeKey> {
  const sent = sessionFetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ scopes: ['changelog.changelog_read'], expiresIn: days * 86_400 }),
  });
  return (await (await answered(sent)).json()) as MadeKey;
}

async function revokeOwnKey(id: string): Promise<void> {
  await answered(sessionFetch(`${url}/${id}`, { method: 'DELETE' }));
}

async function answered(sent: Promise<Response>): Promise<Response> {
  const response = await sent;
  if (!response.ok) throw await errorOfResponse(response);
  return response;
}
