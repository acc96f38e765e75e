// What the page is about: the parameters of its address, and what a view is given and gives.

import type { Call } from "../data/answers.js";

/** The parameters of the address. */
export type State = Record<string, string | undefined>;

/** What a view is given. */
export interface Context {
  /** The element to fill. */
  root: HTMLElement;
  state: State;
  /** Opens another state. */
  go: (state: State) => void;
  /** Changes the address in place. */
  set: (changes: State) => void;
  /** Asks the server; the line in the header runs meanwhile. */
  call: Call;
  /** A text that screen readers read out. */
  say: (text: string) => void;
  /** To be called when a picture is there. */
  drawn: () => void;
  /** Whether the view is still wanted when an answer comes. */
  isOpen: () => boolean;
}

/** What a view gives. */
export interface Opened {
  /** A key was pressed outside of a field; true if the view took it. */
  key?: (event: KeyboardEvent) => boolean;
  /** The window or the theme changed. */
  resize?: () => void;
  /** The view goes. */
  close?: () => void;
  /** Elements for paper in the place of the page. */
  print?: () => Node[] | undefined;
  /** What is drawn, for tests. */
  picture?: () => unknown;
}

/** A module of a view; it opens nothing if it is no longer wanted. */
export interface View {
  open: (context: Context) => Promise<Opened | undefined>;
}
