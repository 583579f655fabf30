const shapes = {
  history: 'M3 12a9 9 0 1 0 3-6.7M3 4v4.5h4.5M12 7.5V12l3 2',
  document: 'M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6',
  actor: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.5a7.5 7.5 0 0 1 15 0',
  agent: 'M5 8h14v11H5zM12 8V4M9 13h.01M15 13h.01M9 16h6',
  data: 'M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3zM4 6v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3',
  overview: 'M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20.5 20.5',
  close: 'M6 6l12 12M18 6 6 18',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  check: 'M5 12.5 10 17.5 19.5 7',
  refresh: 'M20 11a8 8 0 1 0-2 6M20 5v6h-6',
  download: 'M12 4v11M7 11l5 5 5-5M4 20h16',
  previous: 'M15 5l-7 7 7 7',
  next: 'M9 5l7 7-7 7',
  down: 'M5 9l7 7 7-7',
  up: 'M5 15l7-7 7 7',
  sort: 'M8 10l4-4 4 4M8 14l4 4 4-4',
  menu: 'M4 7h16M4 12h16M4 17h16',
  signOut: 'M10 4H5v16h5M14 8l4 4-4 4M18 12H9',
  link: 'M10 14a4 4 0 0 0 5.7 0l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3a4 4 0 0 0 5.7 5.7l1-1',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3.5 2',
  warning: 'M12 4 2.5 20h19zM12 10v4.5M12 17.2v.1',
  plus: 'M12 5v14M5 12h14',
  edit: 'M4 20l1-4.5L16.5 4l3.5 3.5L8.5 19zM14 6.5l3.5 3.5',
  remove: 'M4 7h16M9 7V4h6v3M6.5 7l1 13h9l1-13M10.5 11v5.5M13.5 11v5.5',
  send: 'M4 12 20.5 4 16 20l-4.5-6.5zM11.5 13.5 20.5 4',
  stop: 'M6.5 6.5h11v11h-11z',
  security: 'M12 3l7.5 3v5.5c0 4.6-3.1 8-7.5 9.5-4.4-1.5-7.5-4.9-7.5-9.5V6z',
  help: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.5 9.5a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.9-1.1 1.8M12 16.8v.1',
} as const;

export type IconName = keyof typeof shapes;

/** A sign beside words. It is hidden from screen readers, which have the words. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.8"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={shapes[name]} />
    </svg>
  );
}
