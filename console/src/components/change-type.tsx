/** What happened to a document. */
export type ChangeType = 'create' | 'update' | 'delete';

export const changeTypes: readonly ChangeType[] = ['create', 'update', 'delete'];

const signs: Readonly<Record<ChangeType, string>> = { create: '+', update: '~', delete: '−' };

/** The type of a change as a sign, a colour and, unless `short`, a word. */
export function ChangeTypeMark({ type, short = false }: { readonly type: ChangeType; readonly short?: boolean }) {
  return (
    <span class={`change-type ${type}${short ? ' short' : ''}`} title={type}>
      <span class="sign" aria-hidden="true">
        {signs[type]}
      </span>
      <span class={short ? 'visually-hidden' : ''}>{type}</span>
    </span>
  );
}
