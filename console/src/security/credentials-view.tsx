import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { allows } from '../api/session.ts';
import { Button } from '../components/buttons.tsx';
import { CopiedLines, LastUse, RevokeButton } from '../components/credentials.tsx';
import { counted, countText } from '../components/numbers.ts';
import { ConfirmButton, Dialog } from '../components/overlays.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { ListPage, useList } from '../lists/list-page.tsx';
import { Link } from '../router/router.tsx';
import {
  type Credential,
  type CredentialKind,
  MakeDialog,
  NarrowDialog,
  nameOf,
  partsOf,
  type Secret,
} from './credential-dialogs.tsx';

/** OAuth clients of programs. */
export function ClientsView() {
  return <CredentialsView kind="client" />;
}

/** Keys of programs that cannot renew tokens. */
export function KeysView() {
  return <CredentialsView kind="key" />;
}

const states = { active: 'active', revoked: 'revoked', expired: 'expired', ended: 'ended with its maker' } as const;

/** What is open beside the list. */
type Open =
  | { readonly dialog: 'make' }
  | { readonly dialog: 'narrow'; readonly credential: Credential }
  | { readonly dialog: 'secret'; readonly secret: Secret };

function CredentialsView({ kind }: { readonly kind: CredentialKind }) {
  const list = useList<Credential>({
    name: `${kind}s`,
    defaultSort: 'createdAt:DESC',
    read: (parameters, signal) =>
      kind === 'client' ? annals().clients.list(parameters, { signal }) : annals().keys.list(parameters, { signal }),
  });
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const show = (secret: Secret) => setOpen({ dialog: 'secret', secret });
  const manages = allows('access.credential_manage');
  return (
    <ListPage
      list={list}
      title={kind === 'client' ? 'Clients' : 'Keys'}
      lead={<Lead kind={kind} />}
      example={'state:active name:"Billing"'}
      chips={[['Active', 'state:active']]}
      noun={kind}
      empty={
        kind === 'client'
          ? { icon: 'security', title: 'There is no client', text: 'A client gets access tokens for a program.' }
          : { icon: 'security', title: 'There is no key', text: 'A key lets a program in that cannot renew tokens.' }
      }
      add={
        manages ? (
          <Button kind="primary" icon="plus" onClick={() => setOpen({ dialog: 'make' })}>
            New {kind}
          </Button>
        ) : undefined
      }
      class="wraps credentials"
      keyOf={({ id = '' }) => id}
      columns={[
        { label: 'Name', sort: 'name', cell: (credential) => <Title kind={kind} credential={credential} /> },
        {
          label: 'Made by',
          sort: 'createdAt',
          name: 'Made by',
          cell: (credential) => <Maker credential={credential} />,
        },
        { label: 'May', name: 'May', cell: ({ scopes = [] }) => <Texts texts={scopes} /> },
        { label: 'Sees', name: 'Sees', cell: (credential) => <Texts texts={partsOf(credential)} /> },
        ...(kind === 'key'
          ? [{ label: 'Calls', name: 'Calls', cell: (credential: Credential) => <Texts texts={callsOf(credential)} /> }]
          : []),
        {
          label: 'Last use',
          sort: 'usedAt',
          name: 'Last use',
          cell: ({ usedAt, usedAddress }) => <LastUse at={usedAt} address={usedAddress} />,
        },
        {
          label: 'Ends',
          sort: 'expiresAt',
          name: 'Ends',
          cell: (credential) => <End credential={credential} />,
        },
        ...(manages
          ? [
              {
                label: 'Actions',
                class: 'row-actions',
                cell: (credential: Credential) => (
                  <Actions
                    kind={kind}
                    credential={credential}
                    onNarrow={() => setOpen({ dialog: 'narrow', credential })}
                    onSecret={show}
                    onDone={list.reload}
                  />
                ),
              },
            ]
          : []),
      ]}
    >
      {open?.dialog === 'make' ? <MakeDialog kind={kind} onMade={list.reload} onSecret={show} onClose={close} /> : null}
      {open?.dialog === 'narrow' ? (
        <NarrowDialog kind={kind} credential={open.credential} onNarrowed={list.reload} onClose={close} />
      ) : null}
      {open?.dialog === 'secret' ? <SecretDialog kind={kind} secret={open.secret} onClose={close} /> : null}
    </ListPage>
  );
}

function Lead({ kind }: { readonly kind: CredentialKind }) {
  return kind === 'client' ? (
    <>
      A client gets access tokens for a program. Programs that cannot renew tokens use{' '}
      <Link to={{ path: 'security/keys' }}>keys</Link>.
    </>
  ) : (
    <>
      For AI tools, OpenAI and Anthropic clients, which cannot renew access tokens. Other programs use{' '}
      <Link to={{ path: 'security/clients' }}>clients</Link>.
    </>
  );
}

function Title({ kind, credential }: { readonly kind: CredentialKind; readonly credential: Credential }) {
  const { id = '', name } = credential;
  return (
    <>
      <Name text={nameOf(kind, credential)} />
      {name === id ? undefined : <div class="muted mono nowrap">{id}</div>}
    </>
  );
}

function Maker({ credential: { madeBy, createdAt = '' } }: { readonly credential: Credential }) {
  return (
    <>
      {madeBy === undefined ? 'an operator' : <Name text={madeBy.name ?? madeBy.client ?? ''} />}
      <div class="muted">
        <Time at={createdAt} detail="day" />
      </div>
    </>
  );
}

/** Lines that are shown without being opened. */
const shownTexts = 4;

/** A line for each, and the number of those that are left out. */
function Texts({ texts }: { readonly texts: readonly string[] }) {
  const rest = texts.slice(shownTexts);
  return (
    <div class="credential-texts" title={texts.join('\n')}>
      {texts.slice(0, shownTexts).map((text) => (
        <div key={text}>
          <Name text={text} />
        </div>
      ))}
      {rest.length === 0 ? undefined : <div class="muted">and {countText(rest.length)} more</div>}
    </div>
  );
}

/** What a key may call, for whom, and how often. */
function callsOf({ scopes = [], models, rate, user }: Credential): string[] {
  const calls = scopes.includes('ai.completion_manage');
  return [
    ...(models ?? (calls ? ['all models'] : ['no models'])),
    ...(user === undefined ? [] : [`for the user ${user}`]),
    ...(rate === undefined ? [] : [`${counted(rate, 'request')} a second`]),
  ];
}

function End({ credential }: { readonly credential: Credential }) {
  const { state = 'active', expiresAt, revokedAt, madeBy } = credential;
  if (state === 'ended') return <>{states.ended}</>;
  const at = state === 'revoked' ? revokedAt : expiresAt;
  if (at === undefined) return <>{madeBy === undefined ? 'never' : 'with its maker'}</>;
  return (
    <>
      {state === 'active' ? undefined : <div>{states[state]}</div>}
      <Time at={at} detail="minute" />
    </>
  );
}

interface ActionsProps {
  readonly kind: CredentialKind;
  readonly credential: Credential;
  readonly onNarrow: () => void;
  readonly onSecret: (secret: Secret) => void;
  readonly onDone: () => void;
}

function Actions({ kind, credential, onNarrow, onSecret, onDone }: ActionsProps) {
  const { id = '', state } = credential;
  const name = nameOf(kind, credential);
  if (state !== 'active') return null;
  const rotate = async () => {
    onSecret(kind === 'client' ? await annals().clients.rotate(id) : await annals().keys.rotate(id));
    onDone();
  };
  const revoke = async () => {
    await (kind === 'client' ? annals().clients : annals().keys).revoke(id);
    onDone();
  };
  return (
    <>
      <Button kind="quiet" aria-label={`Narrow ${name}`} aria-haspopup="dialog" onClick={onNarrow}>
        Narrow
      </Button>
      <ConfirmButton
        kind="quiet"
        aria-label={`Rotate ${name}`}
        ask={{
          title: `Replace the secret of this ${kind}?`,
          label: 'Replace',
          run: rotate,
          body: (
            <p>
              Programs that use the old secret of <Name class="mono" text={name} /> stop within five seconds.
              {kind === 'client' && ' Other sessions that began with it end.'}
            </p>
          ),
        }}
      >
        Rotate
      </ConfirmButton>
      <RevokeButton noun={kind} name={name} makes={kind === 'client'} run={revoke} />
    </>
  );
}

interface SecretDialogProps {
  readonly kind: CredentialKind;
  readonly secret: Secret;
  readonly onClose: () => void;
}

function SecretDialog({ kind, secret, onClose }: SecretDialogProps) {
  return (
    <Dialog
      title={kind === 'client' ? 'The secret of the client' : 'The key'}
      onClose={onClose}
      footer={
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      }
    >
      <p>
        {'key' in secret ? 'It' : 'Programs need the id and the secret, which'} is shown only once: store it before you
        close this dialog.
      </p>
      {'key' in secret ? (
        <CopiedLines what="the key" text={secret.key} />
      ) : (
        <>
          <CopiedLines what="the id" text={secret.id} />
          <CopiedLines what="the secret" text={secret.clientSecret} />
        </>
      )}
    </Dialog>
  );
}
