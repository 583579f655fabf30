import type { Grant } from '@annals/client';
import { annals } from '../api/annals.ts';
import { allows } from '../api/session.ts';
import { ConfirmButton } from '../components/overlays.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { ListPage, useList } from '../lists/list-page.tsx';

/** Programs that people of the tenant allowed to read its history. Who may, ends what they were allowed. */
export function GrantsView() {
  const list = useList({
    name: 'grants',
    defaultSort: 'createdAt:DESC',
    read: (parameters, signal) => annals().grants.list(parameters, { signal }),
  });
  return (
    <ListPage
      list={list}
      title="Programs that signed in"
      lead="AI programs that read the history for a person who allowed it. A program reads what its person may read now."
      example='onBehalfOf:"Jane Doe"'
      chips={[['End with a session', 'endsWithSession:true']]}
      noun="grant"
      empty={{ icon: 'link', title: 'There is no grant', text: 'No one has allowed a program.' }}
      class="wraps"
      keyOf={({ id }) => id}
      columns={[
        { label: 'Program', sort: 'name', cell: ({ name = '' }) => <Name text={name} /> },
        {
          label: 'For',
          sort: 'onBehalfOf',
          title: ({ subject, issuer }) => (subject === undefined ? undefined : `${subject} at ${issuer}`),
          cell: ({ onBehalfOf = '' }) => <Name text={onBehalfOf} />,
        },
        { label: 'Answered to', name: 'Answered to', cell: ({ redirectUri = '' }) => <Name text={redirectUri} /> },
        {
          label: 'Since',
          name: 'Since',
          sort: 'createdAt',
          class: 'nowrap',
          cell: ({ createdAt = '' }) => <Time at={createdAt} detail="minute" />,
        },
        {
          label: 'Last used',
          name: 'Last used',
          sort: 'usedAt',
          class: 'nowrap',
          title: ({ usedAddress }) => usedAddress,
          cell: ({ usedAt }) => (usedAt === undefined ? '' : <Time at={usedAt} detail="minute" />),
        },
        ...(allows('access.credential_manage')
          ? [{ label: '', class: 'nowrap', cell: (shown: Grant) => <EndGrant of={shown} onEnd={list.reload} /> }]
          : []),
      ]}
    />
  );
}

function EndGrant({ of, onEnd }: { readonly of: Grant; readonly onEnd: () => void }) {
  const { id, name = '', onBehalfOf = '' } = of;
  return (
    <ConfirmButton
      kind="quiet"
      aria-label={`End ${name} for ${onBehalfOf}`}
      ask={{
        title: 'End this grant?',
        label: 'End it',
        run: async () => {
          await annals().grants.end(id);
          onEnd();
        },
        body: (
          <p>
            <Name text={name} /> reads nothing more for <Name text={onBehalfOf} /> within five seconds. They can allow
            it again.
          </p>
        ),
      }}
    >
      End
    </ConfirmButton>
  );
}
